"""Several jobs of one command: what -m makes of lists of values; the space of a search."""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf, prod
from typing import Any, ClassVar

from distill.core.errors import INTERRUPTED, DistillError, OneLine, counted


@dataclass(frozen=True)
class Job:
    """One combination of values: what it sets (key: value), its own command line, its settings."""

    swept: Mapping[str, str]
    overrides: Sequence[str]
    settings: Any
    name: str = ""


@dataclass(frozen=True)
class Outcome:
    """How a job ended; `status` None: it was not reached. `state`: what to say of it instead."""

    status: int | None = None
    reason: str = ""
    state: str = ""


@dataclass(frozen=True)
class Sweep:
    """What a command does around its jobs; this one only names them by their values.

    `searches`: the command has the groups `search` and `launcher`, and `search` runs the trials.
    """

    searches: ClassVar[bool] = False

    def alone(self, settings: Any) -> None:
        """Refuse settings that mean something for several jobs only."""

    def place(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs with their names."""
        return [replace(j, name=" ".join(f"{k}={v}" for k, v in j.swept.items())) for j in jobs]

    def report(self, jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> None:
        """Say what came of the jobs, in the order of `jobs`."""

    def grid(self, name: str, task: Callable[[Any], None], jobs: Sequence[Job], asked: Any) -> None:
        """Run all the jobs by the `Searching` asked for; `name` is the command's."""
        raise NotImplementedError

    def search(self, name: str, task: Callable[[Any], None], space: Any, asked: Any) -> None:
        """Run jobs of a `Space` by the `Searching` asked for; `name` is the command's."""
        raise NotImplementedError


NO_FOLDERS = Sweep()


def run(
    task: Callable[[Any], None],
    jobs: Sequence[Job],
    sweep: Sweep,
    carry_out: Callable[[Sequence[Job]], list[Outcome]] | None = None,
    report: bool = True,
) -> None:
    """Every job, whatever becomes of the others; Ctrl-C ends them all.

    They run in turn where `carry_out` does not say otherwise. Raises DistillError when a job
    failed, SystemExit(130) when one was interrupted.
    """
    if not any(job.swept for job in jobs):
        raise DistillError("-m: no setting has several values; KEY=VALUE,VALUE, or leave -m out")
    jobs = sweep.place(jobs)
    if carry_out:
        outcomes = carry_out(jobs)
    else:
        outcomes = [Outcome()] * len(jobs)
        for i, job in enumerate(jobs):
            print(f"[{i + 1}/{len(jobs)}] {job.name}", flush=True)
            outcomes[i] = attempt(task, job)
            if outcomes[i].status == INTERRUPTED:
                break
    if report:
        sweep.report(jobs, outcomes)
    if INTERRUPTED in [outcome.status for outcome in outcomes]:
        sys.exit(INTERRUPTED)
    failed = [job.name for job, outcome in zip(jobs, outcomes, strict=True) if outcome.status]
    if failed:
        raise DistillError(
            f"{len(failed)} of {counted(len(jobs), 'job')} failed: {', '.join(failed)}"
        )


def attempt(task: Callable[[Any], None], job: Job) -> Outcome:
    """One job as if it were alone in the process; an error is its outcome."""
    lines = OneLine()
    with _process(job):
        try:
            with lines:
                task(job.settings)
        except SystemExit as stop:
            status = int(stop.code or 0)
            return Outcome(status, lines.reason or f"exit status {status}")
        except Exception as error:  # a bug, or no memory left: the other jobs need not care
            traceback.print_exc()
            return Outcome(1, f"{type(error).__name__}: {error}")
    return Outcome(0)


@contextmanager
def _process(job: Job) -> Iterator[None]:
    """The process as if it ran this job alone, and as it was when the job is over."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers = [signal.getsignal(number) for number in numbers]
    arguments, environment = sys.argv, dict(os.environ)
    sys.argv = [arguments[0], *job.overrides]
    try:
        yield
    finally:
        sys.argv = arguments
        for number, handler in zip(numbers, handlers, strict=True):
            signal.signal(number, handler)
        for name in os.environ.keys() - environment.keys():
            del os.environ[name]
        os.environ.update(environment)
        # Leave the processes of a distributed training: the next one brings its own.
        if "torch" in sys.modules:  # inference needs none
            from torch import distributed

            if distributed.is_available() and distributed.is_initialized():
                distributed.destroy_process_group()
        gc.collect()  # a trainer refers to itself, and its memory is the next one's


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
