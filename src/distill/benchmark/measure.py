"""The steps of distill.benchmark: which providers there are, all models timed in turn, the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict
from functools import partial

import torch

from distill.benchmark.figures import Conditions, Figures, ReadyModel, ratios, row
from distill.benchmark.timed_models import TimedModel
from distill.config.settings.commands import Benchmark
from distill.core import sessions
from distill.core.errors import DistillError, reason_of
from distill.core.progress import bar
from distill.metrics import machine, timing


def providers(settings: Benchmark) -> tuple[list[str], list[str]]:
    """The providers that are there, and a line for each that is not, which is said too.

    Raises DistillError where none is there.
    """
    there, missing = [], []
    for name in settings.providers:
        try:
            sessions.require_provider(name)
            there.append(name)
        except sessions.NoProvider as error:
            missing.append(str(error))
            print(f"skipped: {error}", file=sys.stderr)
    if not there:
        raise DistillError(missing[0])
    return there, missing


def measure(models: Sequence[TimedModel], settings: Benchmark, there: Sequence[str]) -> Figures:
    """All models on every provider that is there, at every size, on every number of threads."""
    load = machine.load_average()
    figures = Figures(machine.facts() | {"rounds": settings.rounds, "load_before": load})
    counts = [machine.cores() if n == "all" else n for n in settings.threads]
    before = torch.get_num_threads()
    try:
        for provider in dict.fromkeys(there):
            for size in dict.fromkeys(settings.sizes):
                for threads in dict.fromkeys(counts):
                    conditions = Conditions(provider, size, threads)
                    _measure_under(conditions, models, settings.rounds, figures)
    finally:
        torch.set_num_threads(before)
    figures.fill_in_shares()
    figures.machine["load_after"] = machine.load_average()
    return figures


def _measure_under(
    conditions: Conditions, models: Sequence[TimedModel], rounds: int, figures: Figures
) -> None:
    size, threads, provider = conditions.size, conditions.threads, conditions.provider
    torch.set_num_threads(threads)
    found = [_make_ready(model, conditions, figures.skipped) for model in models]
    ready = [each for each in found if each is not None]
    if not ready:
        return
    try:
        products = machine.products(threads, provider)
    except Exception as error:  # ONNX Runtime raises classes of its own, without a common base
        figures.skipped.append(f"no peak on {provider}: {reason_of(error)}")
        products = {}
    calls: dict[Hashable, Callable[[], object]] = {each.model.name: each.call for each in ready}
    calls.update(products.items())
    what = f"{size}², {threads} thread{'s'[: threads != 1]}"
    with bar(rounds * len(calls), "turn", what, leave=False) as progress, torch.inference_mode():
        times = timing.interleave(calls, rounds, progress.update)
    rates = [machine.rate(side**3, min(times[library, side].runs)) for library, side in products]
    figures.peaks.append(asdict(conditions) | {"gmacs_per_s": max(rates, default=None)})
    figures.rows += [row(each, conditions, times[each.model.name]) for each in ready]
    figures.ratios += ratios([each.model for each in ready], conditions, times)


def _make_ready(model: TimedModel, conditions: Conditions, skipped: list[str]) -> ReadyModel | None:
    """The model after its first run; says why where it does not run under these conditions."""
    size, provider = conditions.size, conditions.provider
    call: Callable[[], object]
    try:
        graph = model.at(size)
        if graph is not None:
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


def end(*left_out: Sequence[str]) -> None:
    """Raises DistillError (exit status 1) where anything was left out."""
    if count := sum(map(len, left_out)):
        raise DistillError(f"{count} left out, see above")
