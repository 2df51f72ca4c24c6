"""The steps of distill.benchmark: which providers there are, all models timed in turn, the end."""

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import product
from typing import Any

import onnx
import torch

from distill.core import sessions
from distill.core.errors import DistillError, counted, reason_of
from distill.core.progress import bar
from distill.core.threads import on_threads
from distill.metrics import complexity, timing
from distill.metrics.timing import Times
from distill_benchmark import footprint
from distill_benchmark.settings import Benchmark
from distill_benchmark.timed_models import TimedModel

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


def providers(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Those of the providers that are there, and a line for each that is not, which is said too.

    Raises DistillError where none is there.
    """
    available, missing = [], []
    for name in names:
        try:
            sessions.require_provider(name)
            available.append(name)
        except sessions.NoProvider as error:
            missing.append(str(error))
            print(f"skipped: {error}", file=sys.stderr)
    if not available:
        raise DistillError(missing[0])
    return available, missing


def measure(models: Sequence[TimedModel], settings: Benchmark, there: Sequence[str]) -> Figures:
    """All models on every provider that is there, at every size, on every number of threads."""
    load = timing.load_average()
    figures = Figures(timing.facts() | {"rounds": settings.rounds, "load_before": load})
    counts = [timing.cores() if n == "all" else n for n in settings.threads]
    # Each once, however often it was typed.
    for each in dict.fromkeys(product(there, settings.sizes, counts)):
        conditions = Conditions(*each)
        with on_threads(conditions.threads):
            _measure_under(conditions, models, settings.rounds, figures)
    peaks = figures.best_peaks()
    for line in figures.rows:  # what share of the fastest product, on as many threads, it comes to
        peak, rate = peaks.get((line["provider"], line["threads"])), line["gmacs_per_s"]
        line["share_of_peak"] = rate / peak if rate and peak else None
    figures.machine["load_after"] = timing.load_average()
    return figures


def _measure_under(
    conditions: Conditions, models: Sequence[TimedModel], rounds: int, figures: Figures
) -> None:
    size, threads, provider = conditions.size, conditions.threads, conditions.provider
    candidates = [_make_ready(model, conditions, figures.skipped) for model in models]
    ready = [each for each in candidates if each is not None]
    if not ready:
        return
    try:
        products = timing.products(threads, provider)
    except Exception as error:  # ONNX Runtime raises classes of its own, without a common base
        figures.skipped.append(f"no peak on {provider}: {reason_of(error)}")
        products = {}
    calls: dict[Hashable, Callable[[], object]] = {each.model.name: each.call for each in ready}
    calls.update(products.items())
    what = f"{size}², {counted(threads, 'thread')}"
    with bar(rounds * len(calls), "turn", what, leave=False) as progress, torch.inference_mode():
        times = timing.interleave(calls, rounds, progress.update)
    rates = [timing.rate(side**3, min(times[library, side].runs)) for library, side in products]
    figures.peaks.append(asdict(conditions) | {"gmacs_per_s": max(rates, default=None)})
    figures.rows += [row(each, conditions, times[each.model.name]) for each in ready]
    figures.ratios += ratios([each.model for each in ready], conditions, times)


def _make_ready(model: TimedModel, conditions: Conditions, skipped: list[str]) -> ReadyModel | None:
    """The model after its first run; says why where it does not run under these conditions."""
    size, provider = conditions.size, conditions.provider
    call: Callable[[], object]
    try:
        graph = model.at(size)
        if model.file is not None:
            if (conditions.threads, provider) != (1, sessions.CPU):
                raise DistillError("only one thread of the CPU runs it")
            call = model.file_call(size)
        elif graph is not None:
            session = sessions.open_session(graph, conditions.threads, provider, timed=True)
            call = sessions.sample_call(session)
        elif model.network is None or provider != sessions.CPU:
            raise DistillError("only PyTorch runs it, on the CPU")
        else:
            photo = torch.rand(1, 3, size, size, generator=torch.Generator().manual_seed(0))
            call = partial(model.network, photo)
        call()
    except Exception as error:  # see _measure_under
        line = f"{model.name} at {size}² on {provider}: {reason_of(error)}"
        if line not in skipped:
            skipped.append(line)
            print(f"skipped: {line}", file=sys.stderr)
        return None
    return ReadyModel(model, graph, call)


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
        "runtime": model.file[0].runs_in if model.file else "ONNX Runtime" if graph else "PyTorch",
        "ms": times.median,
        "ms_p5": times.percentile(5),
        "ms_p95": times.percentile(95),
        "fps": times.fps,
        "runs": len(times.runs),
        "macs": macs,
        "gmacs_per_s": timing.rate(macs, times.median) if macs else None,
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
        with suppress(Exception):  # DistillError, and what shape inference refuses
            return complexity.graph_macs(ready.graph) or None
    network = ready.model.network
    return complexity.module_macs(network, size) if network is not None else None


def end(*omissions: Sequence[str]) -> None:
    """Raises DistillError (exit status 1) where anything was left out."""
    if count := sum(map(len, omissions)):
        raise DistillError(f"{count} left out, see above")
