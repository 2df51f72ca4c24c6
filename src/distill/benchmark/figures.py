"""What distill.benchmark works out of the times that it took."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

import onnx

from distill.benchmark.timed_models import TimedModel
from distill.metrics import complexity, footprint, machine, timing
from distill.metrics.timing import Times

Row = dict[str, Any]


@dataclass(frozen=True)
class Conditions:
    """Where and how one table's times are taken."""

    provider: str
    size: int
    threads: int


@dataclass(frozen=True)
class ReadyModel:
    """A model that runs under the conditions: its graph, if it has one, and one run of it."""

    model: TimedModel
    graph: onnx.ModelProto | None
    call: Callable[[], object]


@dataclass
class Figures:
    """`rows`: one model on one provider, at one size, on so many threads. `ratios`: its time in
    those of the student. `peaks`: GMAC/s of a large product, by provider, size and threads."""

    machine: Row
    rows: list[Row] = field(default_factory=list)
    ratios: list[Row] = field(default_factory=list)
    peaks: list[Row] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def best_peaks(self) -> dict[tuple[str, int], float]:
        """GMAC/s of the fastest product by provider and threads; 0 where none ran."""
        best: dict[tuple[str, int], float] = {}
        for each in self.peaks:
            key = each["provider"], each["threads"]
            best[key] = max(best.get(key, 0), each["gmacs_per_s"] or 0)
        return best

    def fill_in_shares(self) -> None:
        """What share of the fastest product, on as many threads, each row comes to."""
        peaks = self.best_peaks()
        for line in self.rows:
            peak, rate = peaks.get((line["provider"], line["threads"])), line["gmacs_per_s"]
            line["share_of_peak"] = rate / peak if rate and peak else None


def row(ready: ReadyModel, conditions: Conditions, times: Times) -> Row:
    """One model's figures, its memory measured on the way."""
    model, graph = ready.model, ready.graph
    macs, parameters = _macs(ready, conditions.size), None
    if model.network is not None:
        parameters = complexity.parameters(model.network)
    elif graph is not None:
        parameters = complexity.graph_parameters(graph)
    memory = None
    if graph is not None:
        memory = footprint.peak_mib(graph, conditions.threads, conditions.provider)
    return {
        "name": model.name,
        "role": model.role,
        **asdict(conditions),
        "runtime": "ONNX Runtime" if graph else "PyTorch",
        "ms": times.median,
        "ms_p5": times.percentile(5),
        "ms_p95": times.percentile(95),
        "fps": times.fps,
        "runs": len(times.runs),
        "macs": macs,
        "gmacs_per_s": machine.rate(macs, times.median) if macs else None,
        "share_of_peak": None,  # when all is measured
        "memory_mib": memory,
        "parameters": parameters,
        "bytes": model.bytes,
        "subnormal_weights": model.subnormals,
        "flushed_weights": model.flushed,
    }


def ratios(
    models: Sequence[TimedModel], conditions: Conditions, times: Mapping[Hashable, Times]
) -> list[Row]:
    """Every other one's time in those of the student; a file with subnormals only flushed."""
    return [
        {"name": other.name, "student": student.name, **asdict(conditions)}
        | {"role": "teacher" if other.role == "teacher" else "file"}
        | asdict(timing.ratio(times[other.name], times[student.name]))
        for student in models
        if student.role == "student"
        for other in models
        if other.name != student.name and other.role != "file, unflushed"
    ]


def _macs(ready: ReadyModel, size: int) -> int | None:
    """Of the graph, as it runs; of the network where the graph's shapes are not static."""
    if ready.graph is not None:
        with suppress(Exception):  # ValueError, and what shape inference refuses
            return complexity.graph_macs(ready.graph) or None
    network = ready.model.network
    return complexity.module_macs(network, size) if network is not None else None
