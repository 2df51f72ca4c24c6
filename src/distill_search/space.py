"""What a search samples from: the values typed behind -m, each with its range or its list."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import Any

from distill.config.compose import alternatives, over_conf
from distill.config.multirun import Job, Make
from distill.core.errors import DistillError


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


def space_of(name: str, overrides: Sequence[str], make: Make, checked: bool = True) -> Space:
    """The search space of words behind -m; with `checked` every value of a list and both ends of
    numbers are composed, and refused where they are wrong."""
    with over_conf(name, overrides) as parser:
        parsed = parser.parse_overrides(list(overrides))
        axes = [_axis(override) for override in parsed if override.is_sweep_override()]
    if not axes:
        raise DistillError("-m: no setting has several values; KEY=VALUE,VALUE, or leave -m out")

    def job(chosen: Mapping[str, str]) -> Job:
        words = [
            f"{o.get_key_element()}={chosen[o.key_or_group]}"
            if o.is_sweep_override()
            else str(o.input_line)
            for o in parsed
        ]
        swept = {axis.key: axis.choices.get(chosen[axis.key], chosen[axis.key]) for axis in axes}
        return make(swept, words)

    fixed = [str(o.input_line) for o in parsed if not o.is_sweep_override()]
    space = Space(axes, fixed, job)
    for chosen in space.probes() if checked else ():
        job(chosen)
    return space


def _axis(override: Any) -> Axis:
    """The values of one setting, by its override as Hydra has parsed it."""
    key, text = override.key_or_group, str(override.input_line).partition("=")[2]
    value = override.value()
    tags = set(getattr(value, "tags", ()))
    if other := tags - {"log"}:
        raise DistillError(f"{key}={text}: tag {min(other)} is unsupported; the only tag is log")
    if override.is_interval_sweep():
        if not value.start < value.end or (tags and value.start <= 0):
            raise DistillError(
                f"{key}={text}: an interval must increase; with tag(log,…) it starts above 0"
            )
        step = 1 if isinstance(value.start, int) and isinstance(value.end, int) else None
        return Axis(key, text, {}, value.start, value.end, step, bool(tags))
    values = alternatives(override)  # raises where there are none
    if not override.is_range_sweep():
        if tags:
            raise DistillError(f"{key}={text}: tag log needs numbers: interval(FROM,TO)")
        return Axis(key, text, {word.partition("=")[2]: shown for shown, word in values})
    numbers: Any = sorted(override.sweep_iterator())
    step, low = abs(value.step), numbers[0]
    if tags and (step != 1 or not isinstance(low, int) or low < 1):
        raise DistillError(f"{key}={text}: tag log needs whole numbers from 1, with step 1")
    return Axis(key, text, {}, low, numbers[-1], step, bool(tags))
