"""`distill.train` beside the bare step, in one process: so many steps of one, then of the other.

A shared machine is a tenth faster or slower from one half minute to the next. Two runs in turn show
that; two blocks of three seconds do not.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytorch_lightning as pl
import torch
from watched import TAIL, cpu_of, train_for

EASE = 2  # steps of each block that do not count: what was in the caches is the other one's


@dataclass(frozen=True)
class Block:
    """Seconds a step of the loop and of the bare step after it, by the clock and of CPU time."""

    loop: float
    loop_cpu: float
    bare: float
    bare_cpu: float


class Beside(pl.Callback):
    """Blocks of `steps` steps, each before as many of the bare step on one resident batch.

    The loading processes stand still meanwhile; they have filled their queue, as at other times.
    """

    def __init__(self, warm: int, steps: int, make_bare: Callable[[], Callable[[], None]]) -> None:
        self.steps, self._make_bare = steps, make_bare
        self.blocks: list[Block] = []
        self._bare: Callable[[], None] | None = None
        self._done = -warm
        self._begun = (0.0, 0.0)

    def on_train_batch_end(self, *_args: object) -> None:
        self._done += 1
        if self._done <= 0:
            return
        place = self._done % (EASE + self.steps)
        if place == EASE:
            self._begun = _now()
        elif place == 0:
            loop = self._since(self._begun)
            with _standing_still():
                self.blocks.append(Block(*loop, *self._bare_steps()))

    def _bare_steps(self) -> tuple[float, float]:
        with torch.random.fork_rng(devices=[]):
            self._bare = self._bare or self._make_bare()
            for _ in range(EASE):
                self._bare()
            begun = _now()
            for _ in range(self.steps):
                self._bare()
            return self._since(begun)

    def _since(self, begun: tuple[float, float]) -> tuple[float, float]:
        clock, cpu = _now()
        return (clock - begun[0]) / self.steps, (cpu - begun[1]) / self.steps


def blocks_beside(
    words: Sequence[str],
    make_bare: Callable[[], Callable[[], None]],
    count: int,
    warm: int,
    steps: int,
) -> list[Block]:
    """`count` blocks of the real command, typed with `words`, after `warm` steps."""
    watch = Beside(warm, steps, make_bare)
    train_for(warm + count * (EASE + steps) + TAIL, words, watch)
    return watch.blocks


def _workers() -> list[int]:
    return [child.pid for child in multiprocessing.active_children() if child.pid]


def _now() -> tuple[float, float]:
    """The clock, and the CPU time of this process and of those that load."""
    return time.perf_counter(), time.process_time() + sum(map(cpu_of, _workers()))


@contextmanager
def _standing_still() -> Iterator[None]:
    """The loading processes stopped."""
    workers = _workers()
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    try:
        yield
    finally:
        for worker in workers:
            os.kill(worker, signal.SIGCONT)
