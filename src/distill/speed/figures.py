"""What distill.benchmark works out of the times that it took."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import onnx

from distill.metrics import complexity, footprint, machine, timing
from distill.metrics.timing import Times
from distill.speed.candidates import Contender

Row = dict[str, Any]


@dataclass
class Figures:
    """`rows`: one contender on one provider, at one size, on so many threads. `ratios`: its time
    in those of the student. `peaks`: GMAC/s of a large product, by provider and threads."""

    machine: Row
    rows: list[Row] = field(default_factory=list)
    ratios: list[Row] = field(default_factory=list)
    peaks: list[Row] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Place:
    """Where and how one table of turns is taken."""

    provider: str
    size: int
    threads: int


@dataclass(frozen=True)
class Entrant:
    """A contender that runs at a place."""

    contender: Contender
    graph: onnx.ModelProto | None
    call: Callable[[], object]


def share_of_peak(figures: Figures) -> None:
    """Fill in what share of the fastest product, on as many threads, each row comes to."""
    peaks: dict[tuple[str, int], float] = {}
    for each in figures.peaks:
        key = each["provider"], each["threads"]
        peaks[key] = max(peaks.get(key, 0), each["gmacs_per_s"] or 0)
    for line in figures.rows:
        peak, rate = peaks.get((line["provider"], line["threads"])), line["gmacs_per_s"]
        line["share_of_peak"] = rate / peak if rate and peak else None


def row(entrant: Entrant, place: Place, times: Times) -> Row:
    contender, graph = entrant.contender, entrant.graph
    macs = _macs(entrant, place.size)
    rate = machine.rate(macs, times.median) if macs else None
    memory = footprint.peak_mib(graph, place.threads, place.provider) if graph else None
    return {
        "name": contender.name,
        "role": contender.role,
        **asdict(place),
        "runtime": "ONNX Runtime" if graph else "PyTorch",
        "ms": times.median,
        "ms_p5": times.percentile(5),
        "ms_p95": times.percentile(95),
        "fps": times.fps,
        "runs": len(times.runs),
        "macs": macs,
        "gmacs_per_s": rate,
        "share_of_peak": None,  # when all is measured
        "memory_mib": memory,
        "parameters": _parameters(entrant),
        "bytes": contender.bytes,
        "subnormal_weights": contender.subnormals,
        "flushed_weights": contender.flushed,
    }


def _macs(entrant: Entrant, size: int) -> int | None:
    """Of the graph, as it runs; of the network where the graph's shapes are not static."""
    if entrant.graph is not None:
        with suppress(Exception):  # ValueError, and what shape inference refuses
            return complexity.graph_macs(entrant.graph) or None
    network = entrant.contender.network
    return complexity.module_macs(network, size) if network is not None else None


def _parameters(entrant: Entrant) -> int | None:
    if entrant.contender.network is not None:
        return complexity.parameters(entrant.contender.network)
    return complexity.graph_parameters(entrant.graph) if entrant.graph is not None else None


def ratios(entrants: Sequence[Entrant], place: Place, times: Mapping[Hashable, Times]) -> list[Row]:
    """Every other one's time in those of the student; a file with subnormals only flushed."""
    students = [e.contender.name for e in entrants if e.contender.role == "student"]
    return [
        {"name": other.contender.name, "student": student, **asdict(place), "role": _role(other)}
        | asdict(timing.ratio(times[other.contender.name], times[student]))
        for student in students
        for other in entrants
        if other.contender.name != student and other.contender.role != "file, unflushed"
    ]


def _role(entrant: Entrant) -> Literal["teacher", "file"]:
    return "teacher" if entrant.contender.role == "teacher" else "file"
