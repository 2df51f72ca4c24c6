"""Parallel jobs, each in its own process: started, waited for, interrupted together."""

from __future__ import annotations

import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from distill.config.multirun import Outcome
from distill.core.errors import INTERRUPTED

T = TypeVar("T")
PAUSE = 0.2  # seconds between two looks at those at work


class StartedJob(Protocol):
    """A command that runs in a process of its own, here or elsewhere."""

    def ended(self) -> Outcome | None:
        """What became of it; None while it is at work."""

    def interrupt(self) -> None:
        """Have it save its run and end."""


class JobStarter(Protocol):
    """Where commands run; what one says goes to `log`."""

    def start(self, words: Sequence[str], log: Path) -> StartedJob:
        """Start a command."""


def command(name: str, only: int) -> list[str]:
    """This very command, distill.NAME -m …, for one of its jobs alone."""
    typed = [word for word in sys.argv[1:] if re.split(r"[.=]", word.lstrip("+"))[0] != "launcher"]
    return [sys.executable, "-m", f"distill.{name}", *typed, f"launcher.only={only}"]


def run_parallel(
    most: int,
    next_job: Callable[[], T | None],
    start: Callable[[T], StartedJob],
    ended: Callable[[T, Outcome], None],
) -> int:
    """Start jobs, at most so many at once, until there is no next one and all have ended.

    `next_job` is called again whenever one has ended. Ctrl-C and SIGTERM are handed on, so that
    each saves its run; then INTERRUPTED is given, else 0.
    """
    at_work: list[tuple[T, StartedJob]] = []
    handed_on = 0
    with _interrupts() as came:
        try:
            while True:
                while not came and len(at_work) < most and (job := next_job()) is not None:
                    at_work.append((job, start(job)))
                if not at_work:
                    break
                if handed_on < len(came):
                    handed_on = len(came)
                    _interrupt(at_work)
                for each in list(at_work):
                    if (outcome := each[1].ended()) is not None:
                        at_work.remove(each)
                        ended(each[0], outcome)
                if at_work:
                    time.sleep(PAUSE)
        except BaseException:
            _interrupt(at_work)
            raise
    return INTERRUPTED if came else 0


def outcome_of(status: int, log: Path) -> Outcome:
    """What an exit status means, with what the command said last; below 0: a signal ended it."""
    if status in (0, INTERRUPTED):
        return Outcome(status)
    if status < 0:
        return Outcome(1, f"ended by {signal.Signals(-status).name}; {log} has what it said")
    last = log.read_text(errors="replace").strip().rpartition("\n")[2]
    return Outcome(status, last.removeprefix("error: ") or f"exit status {status}")


def _interrupt(jobs: Sequence[tuple[T, StartedJob]]) -> None:
    for _, job in jobs:
        job.interrupt()


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """The signals that asked this process to end, which meanwhile does not."""
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda got, _frame: came.append(got)) for number in numbers]
    try:
        yield came
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
