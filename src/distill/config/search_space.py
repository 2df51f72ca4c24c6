"""What a search may choose from: an axis for each setting that was typed with several values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod

from distill.config.multirun import Job


@dataclass(frozen=True)
class Axis:
    """Words to choose from, or numbers from `low` to `high`, both included.

    `choices` are values as typed and as people read them; empty for numbers. `step` None: any
    number between. `log`: by their logarithm. `text` is what the user typed for the values.
    """

    key: str
    text: str
    choices: Mapping[str, str]
    low: float = 0
    high: float = 0
    step: float | None = None
    log: bool = False

    @property
    def whole(self) -> bool:
        """Whether all its numbers are whole ones."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def typed(self, value: float | str) -> str:
        """A value as it is typed; of a fraction four digits, which is what the run then gets."""
        if self.choices or self.whole:
            return str(value)
        digits = 4 if self.step is None else 9
        rounded = float(f"{float(value):.{digits}g}")
        return f"{min(max(rounded, self.low), self.high):.9g}"

    def ends(self) -> Sequence[str]:
        """The values that show whether all are allowed, as typed."""
        return list(self.choices) or [self.typed(self.low), self.typed(self.high)]


@dataclass(frozen=True)
class Space:
    """Axes, the words typed beside them, and how a choice becomes a job (checked: `make`)."""

    axes: Sequence[Axis]
    fixed: Sequence[str]
    make: Callable[[Mapping[str, str]], Job]

    @property
    def count(self) -> float:
        """How many combinations there are; infinite where an axis has any number between two."""
        steps = ((a.high - a.low) // a.step + 1 if a.step else inf for a in self.axes)
        return prod(len(a.choices) or n for a, n in zip(self.axes, steps, strict=True))

    def swept(self, values: Mapping[str, float | str]) -> dict[str, str]:
        """Values by key as people read them."""
        typed = self.typed(values)
        return {axis.key: axis.choices.get(typed[axis.key], typed[axis.key]) for axis in self.axes}

    def typed(self, values: Mapping[str, float | str]) -> dict[str, str]:
        """Values by key as they are typed."""
        return {axis.key: axis.typed(values[axis.key]) for axis in self.axes}

    def probes(self) -> Iterator[dict[str, str]]:
        """Choices that show every value of a list and both ends of numbers at least once."""
        first = {axis.key: axis.ends()[0] for axis in self.axes}
        yield first
        for axis in self.axes:
            for value in axis.ends()[1:]:
                yield first | {axis.key: value}
