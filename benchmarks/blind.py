"""Sheets to judge students without knowing which is which, and the count of the answers."""

from __future__ import annotations

from against_teacher.blind import main
from fidelity import to_graph

if __name__ == "__main__":
    main(to_graph)
