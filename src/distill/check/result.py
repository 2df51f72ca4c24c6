"""One file held against a profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from distill.check import lens_studio, shared
from distill.check.onnx_graph import Graph
from distill.check.reading import read
from distill.check.shared import Finding, Profile
from distill.core.errors import DistillError


@dataclass(frozen=True)
class Result:
    """What was found in a file; `graph` is None and `error` says why where it cannot be read."""

    path: Path
    graph: Graph | None
    found: Sequence[Finding] = ()
    settings: lens_studio.ImportSettings | None = None
    error: str = ""

    @property
    def findings(self) -> list[Finding]:
        return [each for each in self.found if each.level == "finding"]

    @property
    def ok(self) -> bool:
        return not self.error and not self.findings


def check(path: Path, profile: Profile) -> Result:
    """One file against the rules; a file that cannot be read is a result too."""
    try:
        graph = read(path)
    except DistillError as error:
        return Result(path, None, error=str(error))
    try:
        settings = lens_studio.settings(graph) if profile.name == "snapml" else None
        return Result(path, graph, profile.check(graph), settings)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError):
        # Attributes of another kind than their operator's: no rule can be asked about such a file.
        if found := shared.invalid(graph):
            return Result(path, graph, found)
        raise
