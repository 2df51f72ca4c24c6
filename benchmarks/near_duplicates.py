"""Near-duplicates among a million photos: time, memory, and what is found.

Thumbnails are made here: random pictures whose amplitudes fall with the frequency as those of
photographs do, and of one in a hundred a planted copy beside it, each with noise of its own:
straight, mirrored, rotated by up to 25°, or both. What is found of them is by the planted pairs
(`found`), and where every two can be compared too, by those that are alike (`recall`). The same of
real photos with --photos, whose thumbnails are kept in the cache. Each line is printed and written
when it is known; Ctrl-C keeps them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import Table, apart, machine, parser, write
from numpy.typing import NDArray
from torch.nn import functional as F

from distill.data import duplicates
from distill.data.photos import find_photos
from distill.data.split import Edges
from distill.data.thumbnails import LARGE, THUMBNAIL, Thumbnails, rotated, thumbnails
from distill_scale import bucket_search

FIELD = 48  # pixels a side of what the thumbnail and its rotated copy are cut from
NOISE = 3.0  # grey levels, of each picture
PLANTED = 100  # one picture in so many has a copy
PART = 10_000  # pictures made at once
KINDS = ("straight", "mirrored", "rotated", "rotated and mirrored")


def planted(count: int, seed: int = 0) -> tuple[Thumbnails, Edges]:
    """`count` thumbnails, and which of them are a picture and its copy; of the kinds in turn."""
    made, pairs = np.zeros(count, THUMBNAIL), []
    for start in range(0, count, PART):
        rng = np.random.default_rng([seed, start])
        fields = _fields(rng, min(PART, count - start))
        for number, i in enumerate(range(0, len(fields) - 1, PLANTED)):
            fields[i + 1] = _copy(fields[i], KINDS[number % len(KINDS)], rng)
            pairs.append((start + i, start + i + 1))
        edge = (FIELD - LARGE) // 2
        square = fields[:, edge : edge + LARGE, edge : edge + LARGE]
        noise = torch.from_numpy(rng.normal(0, NOISE, square.shape).astype(np.float32))
        part = made[start : start + PART]
        part["large"] = (square + noise).clamp(0, 255).byte().numpy()
        part["small"] = F.avg_pool2d(torch.from_numpy(part["large"]).float(), 2).byte().numpy()
    return made, np.array(pairs, np.int32)


def _fields(rng: np.random.Generator, count: int) -> torch.Tensor:
    """(count, FIELD, FIELD): random pictures, amplitudes inverse to the frequency."""
    frequency = np.hypot(*np.meshgrid(np.fft.rfftfreq(FIELD), np.fft.fftfreq(FIELD)))
    scale = np.where(frequency > 0, 1 / np.maximum(frequency, 1 / FIELD), 0)
    waves = rng.standard_normal((2, count, *scale.shape), np.float32)
    pictures = np.fft.irfft2((waves[0] + 1j * waves[1]) * scale, s=(FIELD, FIELD))
    pictures *= 50 / pictures.std((1, 2), keepdims=True)
    return torch.from_numpy((pictures + 128).astype(np.float32))


def _copy(field: torch.Tensor, kind: str, rng: np.random.Generator) -> torch.Tensor:
    if kind.startswith("rotated"):
        field = rotated(field[None], float(rng.uniform(-25, 25)))[0]
    return field.flip(-1) if kind.endswith("mirrored") else field


def measured(
    pictures: Thumbnails, pairs: Edges, exact: bool, buckets: int, probes: int
) -> dict[str, Any]:
    """What the search takes and finds; `exact`: beside comparing every two."""
    bucket_search.BUCKETS, bucket_search.PROBES = buckets, probes
    forget_peak()
    found, figures = _timed(partial(bucket_search.pairs_in_buckets, pictures))
    figures["MiB"] = peak()
    there = _numbers(found, len(pictures))
    hit = np.isin(_numbers(pairs, len(pictures)), there)
    figures |= {"photos": len(pictures), "pairs": len(found), "probes": probes}
    figures["buckets"] = max(buckets, math.isqrt(len(pictures)))
    if len(pairs):
        figures["found"] = float(hit.mean())
        figures |= {kind: float(hit[i :: len(KINDS)].mean()) for i, kind in enumerate(KINDS)}
    if exact:
        all_pairs, more = _timed(partial(duplicates.all_pairs, pictures))
        wanted = _numbers(all_pairs, len(pictures))
        figures["recall"] = float(np.isin(wanted, there).mean()) if len(wanted) else 1.0
        figures |= {"alike": len(wanted), "more": int((~np.isin(there, wanted)).sum())}
        figures["exact cpu"] = more["cpu"]
    return figures


def forget_peak() -> None:
    """What making the thumbnails took is none of the search's (Linux; see proc(5), clear_refs)."""
    Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """MiB resident at most since then: PyTorch, the thumbnails and the search."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM"))


def _timed(search: Any) -> tuple[Edges, dict[str, Any]]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = search()
    return found, {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def _numbers(pairs: Edges, count: int) -> NDArray[np.int64]:
    return pairs.astype(np.int64) @ np.array([count, 1])


def synthetic(count: int, exact: bool, buckets: int, probes: int) -> dict[str, Any]:
    return {"set": "made"} | measured(*planted(count), exact, buckets, probes)


def real(folder: Path, buckets: int, probes: int) -> dict[str, Any]:
    pictures = thumbnails(find_photos(folder), f"benchmark of {folder.resolve()}")
    none = np.empty((0, 2), np.int32)
    return {"set": "--photos"} | measured(pictures, none, True, buckets, probes)


def table(figures: Sequence[dict[str, Any]]) -> Table:
    columns = ["set", "photos", "buckets", "probes", "wall", "cpu", "MiB", "pairs", "found", *KINDS]
    columns += ["alike", "recall", "more", "exact cpu"]
    rows = [[_cell(each.get(name)) for name in columns] for each in figures]
    return Table("Near-duplicates by buckets (seconds; shares of 1)", columns, rows)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4f}" if value <= 1 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def main() -> None:
    options = parser(__doc__)
    options.add_argument(
        "--counts", type=int, nargs="+", default=[20_000, 100_000, 1_000_000], help="(%(default)s)"
    )
    options.add_argument(
        "--exact", type=int, default=20_000, help="compare all up to (%(default)s)"
    )
    options.add_argument("--buckets", type=int, nargs="+", default=[bucket_search.BUCKETS])
    options.add_argument("--probes", type=int, nargs="+", default=[bucket_search.PROBES])
    args = options.parse_args()
    facts, figures = machine(), list[dict[str, Any]]()
    runs = []
    for how in [(buckets, probes) for buckets in args.buckets for probes in args.probes]:
        if args.photos:
            runs.append(partial(apart, real, args.photos, *how))
        runs += [partial(apart, synthetic, n, n <= args.exact, *how) for n in args.counts]
    try:
        for run in runs:
            figures.append(run()[0])
            write("near_duplicates", args.out, facts, figures, table(figures))
    except KeyboardInterrupt:
        print("stopped; what was measured is written")


if __name__ == "__main__":
    main()
