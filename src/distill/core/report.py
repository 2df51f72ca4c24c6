"""What distill.check report=NAME writes; conf/report/ names the class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path


class Report(ABC):
    """A page on a trained run."""

    @abstractmethod
    def write(self, run: str | None, runs: str, output: str | None) -> Path:
        """Write the page of the run of that name in the folder `runs`, None: of the latest, and
        give its file."""
