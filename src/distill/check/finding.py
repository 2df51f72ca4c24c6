"""What a rule says of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from distill.check.onnx_graph import Graph, Node

Level = Literal["finding", "note"]


@dataclass(frozen=True)
class Cause:
    """A rule's words, the same at every node: why it matters, who says so, what to do."""

    why: str
    source: str
    advice: str
    level: Level = "finding"

    def at(self, node: Node | None, what: str, place: str = "") -> Finding:
        """A finding at a node, or where there is none at `place`: an input, an output, the file."""
        name, operator = (node.name, node.operator) if node else (place, "")
        return Finding(name, operator, what, self.why, self.source, self.advice, self.level)


@dataclass(frozen=True)
class Finding:
    """A `finding` keeps the file off the device; a `note` costs speed there, or is to be known."""

    node: str
    operator: str
    what: str
    why: str
    source: str
    advice: str
    level: Level = "finding"


Rule = Callable[[Graph], Iterator[Finding]]


@dataclass(frozen=True)
class Profile:
    """A device's rules; `title` says what runs the file there."""

    name: str
    title: str
    rules: tuple[Rule, ...]

    def check(self, graph: Graph) -> list[Finding]:
        """Everything the rules find, what keeps the file off the device first."""
        found = [finding for rule in self.rules for finding in rule(graph)]
        return sorted(found, key=lambda each: each.level)
