"""Run times: of one network alone, and of several in turn, so that what slows one slows all."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import comb
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import nn

from distill.core.sessions import open_session, picture_call

Call = Callable[[], object]
Key = TypeVar("Key", bound=Hashable)

SPAN = 0.05  # seconds that a call is measured for in one round, where one run takes less
MOST = 10  # runs in a round
SHORT = 0.1  # seconds; shorter runs are repeated once unmeasured, after another one's turn
WARM = 3  # runs that tell how long one takes
CONFIDENCE = 0.95  # of intervals


@dataclass(frozen=True)
class Times:
    """Milliseconds: `runs` of every run, `rounds` the median of each round."""

    runs: Sequence[float]
    rounds: Sequence[float]

    @property
    def median(self) -> float:
        return float(np.median(self.runs))

    def percentile(self, percent: float) -> float:
        """By linear interpolation, as numpy.percentile."""
        return float(np.percentile(self.runs, percent))

    @property
    def fps(self) -> float:
        """Runs a second at the median."""
        return 1000 / self.median


def onnx_ms(path: Path, size: int, repeats: int = 30) -> float:
    """Median milliseconds of an exported network in ONNX Runtime, 1 thread, batch 1."""
    run = picture_call(open_session(path, threads=1))
    return _median_ms(partial(run, np.full((1, 3, size, size), 0.5, np.float32)), repeats)


def torch_ms(network: nn.Module, size: int) -> float:
    """Median milliseconds of 3 runs of a PyTorch network, 1 thread, batch 1."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            photo = torch.full((1, 3, size, size), 0.5)
            return _median_ms(lambda: network(photo), 3)
    finally:
        torch.set_num_threads(threads)


def interleave(
    calls: Mapping[Key, Call], rounds: int, tick: Callable[[], object] = lambda: None
) -> dict[Key, Times]:
    """Run all calls in turn, `rounds` times, every other round backwards.

    Each is warmed up first. In a round a short one runs several times, after one run that does
    not count: the turn before has filled the caches with other things. `tick` is called after each
    turn.
    """
    plan = {}  # by name: how often to run in a round, and whether to run once before
    for name, call in calls.items():
        call()
        seconds = min(_milliseconds(call) for _ in range(WARM)) / 1000
        plan[name] = max(1, min(MOST, round(SPAN / max(seconds, 1e-9)))), seconds < SHORT
    runs: dict[Key, list[list[float]]] = {name: [] for name in calls}
    for number in range(rounds):
        for name in list(calls)[:: -1 if number % 2 else 1]:
            count, settle = plan[name]
            if settle:
                calls[name]()
            runs[name].append([_milliseconds(calls[name]) for _ in range(count)])
            tick()
    return {
        name: Times([ms for each in turns for ms in each], [float(np.median(t)) for t in turns])
        for name, turns in runs.items()
    }


@dataclass(frozen=True)
class Ratio:
    """A median of ratios and the interval that it lies in with 95 % confidence."""

    median: float
    low: float
    high: float


def ratio(above: Times, below: Times) -> Ratio:
    """How many times as long, round by round. Raises ValueError for different rounds."""
    values = [a / b for a, b in zip(above.rounds, below.rounds, strict=True)]
    return Ratio(float(np.median(values)), *median_interval(values))


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Two of the values between which the median lies, without a guess at how they scatter.

    The k-th smallest and k-th largest, k as large as the confidence allows: the number of values
    below the median is binomial with 1/2 (Conover, Practical Nonparametric Statistics, 3.2). With
    fewer than 6 values the whole range, which is then less than 95 % sure.
    """
    ordered, n = sorted(values), len(values)
    outside, k = 0.0, 0
    while k + 1 <= n // 2:
        outside += 2 * comb(n, k) / 2**n
        if outside > 1 - CONFIDENCE:
            break
        k += 1
    k = max(k, 1)
    return ordered[k - 1], ordered[n - k]


def _median_ms(call: Call, repeats: int) -> float:
    """Of `repeats` runs after one that does not count."""
    call()
    return float(np.median([_milliseconds(call) for _ in range(repeats)]))


def _milliseconds(call: Call) -> float:
    start = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - start)
