"""How many threads PyTorch computes with, where other programs may use the cores too.

Threads that share a layer meet at its end and wait for the slowest. On cores of their own that is
nothing; where another program holds one core, all wait until the system lets the last one run, and
fewer threads are many times as fast. Linux shares cores between login sessions first, so a low
priority of the other program does not help.
"""

import os
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import torch
from torch.nn import functional

from distill.core.process import CHOSEN

ROUNDS = 5  # of a trial: every number of threads in turn
CLEARLY = 0.8  # of the time at present: what another number must take less than
SLOW = 1.5  # times as long as before: a step that asks for a trial
RECENT = 3  # steps whose median counts
SHARE = 0.02  # of the time: what trials may take
LONGEST = 120.0  # seconds between trials that change nothing, if SHARE allows it
# Of the network that a trial times. Beside other programs two threads took 4.8 times as long as one
# for it and 4.0 times for a training step; for 12 layers at side 64, 2.1 times.
SIDE, CHANNELS, LAYERS = 32, 32, 48

Unit = TypeVar("Unit")


@contextmanager
def on_threads(count: int) -> Iterator[None]:
    """PyTorch computes with so many threads in this block, and as before behind it."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class ThreadTuner:
    """Finds the number of threads, at most `most`, that computes fastest at present.

    `next` is called before each unit of work (a training step, a batch of pictures) and gives the
    number to use, `took` after it with the seconds that it took. A trial runs before the first
    unit, when units take SLOW times what they took, and, with fewer threads than `most`, from time
    to time. It times `measure(threads)`, seconds of some fixed work, and not the units themselves:
    with the wrong number a training step can take seconds, and its results depend on the number in
    their last bits.

    A number is left only for one that is faster CLEARLY. `clock` gives seconds.
    """

    def __init__(
        self,
        most: int,
        measure: Callable[[int], float],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.most = self.threads = most
        self._measure, self._clock = measure, clock
        self._choices = choices(most)
        self._recent: deque[float] = deque(maxlen=RECENT)
        self._usual = float("inf")  # seconds of a unit since the number was last changed
        self._due = -float("inf")
        self._in_vain = 0  # trials since then

    def next(self) -> int:
        """The number of threads for the unit that comes."""
        full = len(self._recent) == RECENT
        slow = full and statistics.median(self._recent) > SLOW * self._usual
        first = self._due == -float("inf")
        if first or (self._clock() >= self._due and (self.threads < self.most or slow)):
            self._try()
        return self.threads

    def took(self, seconds: float) -> None:
        """A unit took so long."""
        self._recent.append(seconds)
        if len(self._recent) == RECENT:
            self._usual = min(self._usual, statistics.median(self._recent))

    def _try(self) -> None:
        begun, before = self._clock(), self.threads
        seconds: dict[int, list[float]] = {threads: [] for threads in self._choices}
        for _ in range(ROUNDS):
            for threads in self._choices:
                seconds[threads].append(self._measure(threads))
        middle = {threads: statistics.median(times) for threads, times in seconds.items()}
        best = min(self._choices, key=middle.__getitem__)
        if middle[best] < CLEARLY * middle[before]:
            self.threads, self._in_vain, self._usual = best, 0, float("inf")
        else:
            self._in_vain += 1
        self._recent.clear()
        now = self._clock()
        least = (now - begun) / SHARE
        self._due = now + max(least, min(LONGEST, least * 2**self._in_vain))


def choices(most: int) -> list[int]:
    """Numbers of threads to choose from, falling: all, one less, then halves down to an eighth."""
    halves = [most >> n for n in range(1, 4)]
    return sorted({most, *(n for n in (most - 1, *halves) if n)}, reverse=True)


@cache
def process_tuner() -> ThreadTuner | None:
    """The tuner of this process; None where a user chose the number of threads, or it is 1."""
    most = torch.get_num_threads()
    if most == 1 or any(os.environ.get(name) for name in CHOSEN):
        return None
    return ThreadTuner(most, _layers(most))


def adapting(units: Iterable[Unit]) -> Iterator[Unit]:
    """The units of a loop's work, each with the number of threads that is best at present.

    What the loop does until it asks for the next unit counts as that unit's time. Afterwards the
    number is what it was.
    """
    tuner = process_tuner()
    if tuner is None:
        yield from units
        return
    try:
        for unit in units:
            torch.set_num_threads(tuner.next())
            begun = time.perf_counter()
            yield unit
            tuner.took(time.perf_counter() - begun)
    finally:
        torch.set_num_threads(tuner.most)


def _layers(most: int) -> Callable[[int], float]:
    """Times a few layers of convolutions, a picture for each of `most` threads.

    Long enough for several of the slices in which a system shares out its cores.
    """
    generator = torch.Generator().manual_seed(0)  # the run's own numbers are left alone
    pictures = torch.rand(most, CHANNELS, SIDE, SIDE, generator=generator)
    kernels = torch.rand(CHANNELS, CHANNELS, 3, 3, generator=generator) - 0.5

    def seconds(threads: int) -> float:
        torch.set_num_threads(threads)
        begun = time.perf_counter()
        with torch.no_grad():
            for _ in range(LAYERS):
                functional.relu(functional.conv2d(pictures, kernels, padding=1))
        return time.perf_counter() - begun

    return seconds
