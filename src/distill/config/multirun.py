"""Several jobs of one command: what -m makes of lists of values."""

import gc
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from distill.config import compose
from distill.config.help import Section
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


Make = Callable[[Mapping[str, str], Sequence[str]], Job]  # of what is swept and typed


@dataclass(frozen=True)
class Sweep:
    """What a command does with several jobs; this one runs them all and names them by their values.

    `groups` are config groups that are of the jobs together, and no setting of any.
    """

    groups: ClassVar[tuple[str, ...]] = ()
    schemas: ClassVar[tuple[type, ...]] = ()  # of the settings of these groups

    def alone(self, settings: Any, words: Sequence[str]) -> None:
        """Refuse settings, and words for them, that mean something for several jobs only."""
        if shared := self.shared(words):
            raise DistillError(f"{min(shared)}: is for several jobs; add -m")

    def run(self, name: str, task: Callable[..., None], words: Sequence[str], make: Make) -> None:
        """Run the command `name` once for every combination of the values in its words."""
        run(task, jobs(name, words, make), self)

    def place(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs with their names."""
        return [replace(j, name=" ".join(f"{k}={v}" for k, v in j.swept.items())) for j in jobs]

    def report(self, jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> None:
        """Say what came of the jobs, in the order of `jobs`."""

    def shared(self, words: Sequence[str]) -> list[str]:
        """The words that set something of `groups`."""
        return [word for word in words if re.split(r"[.=]", word)[0] in self.groups]

    def sections(self, name: str, comments: Mapping[str, str]) -> list[Section]:
        """The settings of `groups`, for --help of the command `name`."""
        return []


ONE_BY_ONE = Sweep()


def jobs(name: str, words: Sequence[str], make: Make, only: int | None = None) -> list[Job]:
    """A job for every combination of the values in the words, all checked; or `only` that one."""
    return [make(*each) for each in compose.combinations(name, words, only)]


def run(
    task: Callable[..., None],
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


def attempt(task: Callable[..., None], job: Job) -> Outcome:
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
