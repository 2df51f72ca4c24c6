"""The steps of distill.benchmark: which providers there are, turns at every place, the count."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass

import torch

from distill.config.settings import Benchmark
from distill.core import sessions
from distill.core.errors import DistillError
from distill.core.progress import bar
from distill.metrics import machine, timing
from distill.speed.candidates import Contender
from distill.speed.figures import Entrant, Figures, Place, ratios, row, share_of_peak


@dataclass(frozen=True)
class Providers:
    """Those that are there, and a line for each that is not."""

    there: list[str]
    missing: list[str]


def providers(settings: Benchmark) -> Providers:
    """Says which are not there. Raises DistillError where none is."""
    found = Providers([], [])
    for name in settings.providers:
        try:
            sessions.need(name)
            found.there.append(name)
        except sessions.NoProvider as error:
            found.missing.append(str(error))
            print(f"skipped: {error}", file=sys.stderr)
    if not found.there:
        raise DistillError(found.missing[0])
    return found


def measure(found: Sequence[Contender], settings: Benchmark, there: Providers) -> Figures:
    """All contenders at every place."""
    figures = Figures(machine.facts() | {"rounds": settings.rounds, "load_before": machine.load()})
    counts = [machine.cores() if n == "all" else n for n in settings.threads]
    places = [
        Place(provider, size, threads)
        for provider in dict.fromkeys(there.there)
        for size in dict.fromkeys(settings.sizes)
        for threads in dict.fromkeys(counts)
    ]
    before = torch.get_num_threads()
    try:
        for place in places:
            _measure_at(place, found, settings.rounds, figures)
    finally:
        torch.set_num_threads(before)
    share_of_peak(figures)
    figures.machine["load_after"] = machine.load()
    return figures


def _measure_at(place: Place, found: Sequence[Contender], rounds: int, figures: Figures) -> None:
    torch.set_num_threads(place.threads)
    entrants = [e for c in found if (e := _enter(c, place, figures.skipped)) is not None]
    if not entrants:
        return
    products = _products(place, figures.skipped)
    calls: dict[Hashable, Callable[[], object]] = {e.contender.name: e.call for e in entrants}
    calls.update(products.items())
    what = f"{place.size}², {place.threads} thread{'s'[: place.threads != 1]}"
    with bar(rounds * len(calls), " turns", what, leave=False) as progress, torch.inference_mode():
        times = timing.interleave(calls, rounds, progress.update)
    rates = [machine.rate(side**3, min(times[library, side].runs)) for library, side in products]
    figures.peaks.append(asdict(place) | {"gmacs_per_s": max(rates, default=None)})
    figures.rows += [row(e, place, times[e.contender.name]) for e in entrants]
    figures.ratios += ratios(entrants, place, times)


def _enter(contender: Contender, place: Place, skipped: list[str]) -> Entrant | None:
    """The contender ready to run here; says why where it is not."""
    call: Callable[[], object]
    try:
        graph = contender.at(place.size)
        if graph is not None:
            call = sessions.call(sessions.start(graph, place.threads, place.provider))
        elif place.provider != sessions.CPU:
            raise DistillError("only PyTorch runs it, on the CPU")
        else:
            call = _in_torch(contender, place.size)
        call()
    except Exception as error:  # ONNX Runtime raises classes of its own, without a common base
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        line = f"{contender.name} at {place.size}² on {place.provider}: {reason}"
        if line not in skipped:
            skipped.append(line)
            print(f"skipped: {line}", file=sys.stderr)
        return None
    return Entrant(contender, graph, call)


def _in_torch(contender: Contender, size: int) -> Callable[[], object]:
    network = contender.network
    assert network is not None
    photo = torch.rand(1, 3, size, size, generator=torch.Generator().manual_seed(0))
    return lambda: network(photo)


def _products(place: Place, skipped: list[str]) -> dict[tuple[str, int], Callable[[], object]]:
    try:
        return machine.products(place.threads, place.provider)
    except Exception as error:  # see _enter
        skipped.append(f"no peak on {place.provider}: {str(error).strip().partition(chr(10))[0]}")
        return {}


def end(*left_out: Sequence[str]) -> None:
    """Raises DistillError (exit status 1) where anything was left out."""
    if count := sum(map(len, left_out)):
        raise DistillError(f"{count} left out, see above")
