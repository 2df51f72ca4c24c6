"""Run times of one network or of several in turn, and the machine that they were taken on."""

import os
import platform
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from math import comb
from pathlib import Path
from typing import TypeVar

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from distill.core import sessions
from distill.core.process import cores, processor
from distill.core.sessions import open_session, picture_call
from distill.core.threads import on_threads

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


def onnx_ms(path: Path, picture: np.ndarray, repeats: int = 30) -> float:
    """Median milliseconds of an exported network in ONNX Runtime, 1 thread, for what it takes."""
    run = picture_call(open_session(path, threads=1))
    return _median_ms(partial(run, picture), repeats)


def torch_ms(network: nn.Module, size: int | tuple[int, int]) -> float:
    """Median milliseconds of 3 runs of a PyTorch network, 1 thread, batch 1."""
    with on_threads(1), torch.inference_mode():
        photo = torch.full((1, 3, *np.broadcast_to(size, 2)), 0.5)
        return _median_ms(lambda: network(photo), 3)


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
    outside = accumulate(2 * comb(n, below) / 2**n for below in range(n // 2))
    k = max(1, sum(chance <= 1 - CONFIDENCE for chance in outside))
    return ordered[k - 1], ordered[n - k]


def _median_ms(call: Call, repeats: int) -> float:
    """Of `repeats` runs after one that does not count."""
    call()
    return float(np.median([_milliseconds(call) for _ in range(repeats)]))


def _milliseconds(call: Call) -> float:
    start = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - start)


# Of square matrices: large enough to keep all units busy, and the smaller ones done before a busy
# system turns to another program.
SIDES = (512, 1024)


def facts() -> dict[str, object]:
    """What figures depend on; says nothing of whose machine it is."""
    return {
        "processor": processor(),
        "cores": cores(),
        "system": f"{platform.system()} {platform.machine()}",
        "onnxruntime": onnxruntime.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def load_average() -> float | None:
    """How many processes wanted a core in the last minute; None where the system does not tell."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def products(
    threads: int, provider: str = sessions.CPU
) -> dict[tuple[str, int], Callable[[], object]]:
    """Square float32 matrix products by (library, side): side³ MACs each.

    By ONNX Runtime and, on the CPU, by PyTorch: neither is fastest everywhere. PyTorch takes its
    process's number of threads, which the caller sets.
    """
    calls: dict[tuple[str, int], Callable[[], object]] = {}
    for side in SIDES:
        session = sessions.open_session(product(side), threads, provider, timed=True)
        calls["ONNX Runtime", side] = sessions.sample_call(session)
        if provider == sessions.CPU:
            a, b, out = (torch.rand(side, side) for _ in range(3))
            calls["PyTorch", side] = partial(torch.mm, a, b, out=out)
    return calls


def product(side: int) -> onnx.ModelProto:
    """(side, side) times a matrix of weights."""
    weights = np.random.default_rng(0).random((side, side), np.float32)
    a, c = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [side, side]) for n in "ac")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["a", "b"], ["c"])],
        "product", [a], [c], [numpy_helper.from_array(weights, "b")],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def rate(macs: int, milliseconds: float) -> float:
    """GMAC/s."""
    return macs / milliseconds / 1e6
