"""Near-duplicates among more photos than can all be compared: only those that share a bucket are.

Buckets are those of k-means over the discs at 8×8 (`screened_parts`), made with faiss. Every photo
lies in one. It is looked for as it is, mirrored and rotated by every one of ANGLES, each form in
the PROBES buckets nearest to it. What passes the screen is compared as all photos are in
`duplicates`, so a pair that is found is one there too, but for those at the very edge of the
threshold, which depend on which one is rotated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from distill.core.errors import DistillError
from distill.core.progress import bar
from distill.data.labelled.split import NO_EDGES, Edges
from distill.data.labelled.thumbnail_correlation import (
    ALIKE,
    ALIKE_TURNED,
    ANGLES,
    BETWEEN,
    SCREEN,
    Parts,
    disc_mask,
    floats,
    parts_of,
    rotated,
    screened_parts,
)
from distill.data.labelled.thumbnails import Thumbnails

BUCKETS = 256  # at least; of n photos √n, so that the work grows with n√n
PROBES = 2
SAMPLES = 256  # photos a bucket, of which k-means finds the centres
# Of discs as they are or mirrored: those of pictures alike at 16×16, corners included, may differ.
SCREEN_STRAIGHT = 0.88
BLOCK = 8192  # photos looked for at once
PART = 4096  # pairs compared at once: 32 MiB of pictures

Vectors = NDArray[np.float32]


def faiss_library(count: int) -> Any:
    """faiss. Raises DistillError where it is missing; `count` photos are what needs it."""
    try:
        import faiss
    except ImportError as error:
        raise DistillError(
            f"{count:,} photos: near-duplicates among so many are looked for with the package "
            "faiss-cpu; pip install 'distill[scale]', or take fewer photos"
        ) from error
    return faiss


def pairs_in_buckets(of: Thumbnails, first: int | None = None) -> Edges:
    """The pairs (smaller, larger) that are alike and share a bucket, sorted, each once.

    With `first` only those of one of the first so many with one of the others. Raises DistillError
    where faiss is not installed.
    """
    index = _buckets(of, 0 if first is None else first)
    found, end = [NO_EDGES], len(of) if first is None else first
    with bar(end, "photo", "near-duplicates", leave=False) as progress:
        for start in range(0, end, BLOCK):
            block = of[start : min(start + BLOCK, end)]
            _, large = floats(block)
            hits: dict[int, list[Edges]] = {}
            for angle in ANGLES:
                for form in _forms(screened_parts(rotated(large, angle))):
                    screen = SCREEN if angle else SCREEN_STRAIGHT
                    near = _near(index, form, screen) + np.array([start, 0])
                    hits.setdefault(angle, []).append(near[near[:, 0] != near[:, 1]])
            known = NO_EDGES
            for angle in sorted(hits, key=abs):  # most pairs are alike as they are
                near = _without(np.unique(np.concatenate(hits[angle]), axis=0), known, len(of))
                known = np.concatenate([known, near[_alike(of, near, angle)]])
            found.append(np.sort(known, axis=1).astype(np.int32))
            progress.update(len(block))
    return np.unique(np.concatenate(found), axis=0)


def _buckets(of: Thumbnails, start: int) -> Any:
    """The index of the discs from `start` on; flat ones, which are like none, left out."""
    faiss = faiss_library(len(of))
    count = len(of) - start
    buckets = max(min(BUCKETS, count // 8), math.isqrt(count), 1)
    sampled = np.linspace(start, len(of) - 1, min(count, SAMPLES * buckets)).astype(np.int64)
    sample = _discs(of[sampled])
    size = sample.shape[1]
    index = faiss.index_factory(size, f"IVF{buckets},Flat", faiss.METRIC_INNER_PRODUCT)
    index.nprobe, index.cp.min_points_per_centroid = PROBES, 1
    sample = sample[sample.any(1)]
    if len(sample) < buckets:
        sample = np.concatenate([sample, np.eye(size, dtype=np.float32)])
    index.train(sample)
    for i in range(start, len(of), BLOCK):
        discs = _discs(of[i : i + BLOCK])
        shown = np.flatnonzero(discs.any(1))
        index.add_with_ids(discs[shown], shown + i)
    return index


def _discs(of: Thumbnails) -> Vectors:
    _, large = floats(of)
    return torch.cat(screened_parts(large), 1).numpy()


def _forms(of: Parts) -> Iterator[Vectors]:
    """Discs and mirrored discs; flat ones are zero, and near to none."""
    even, odd = of
    yield torch.cat([even, odd], 1).numpy()
    yield torch.cat([even, -odd], 1).numpy()


def _near(index: Any, form: Vectors, screen: float) -> NDArray[np.int64]:
    """(k, 2): row of `form` and photo in the index, where their correlation is above `screen`."""
    limits, _, photos = index.range_search(form, screen)
    rows = np.repeat(np.arange(len(form)), np.diff(limits.astype(np.int64)))
    return np.stack([rows, photos], 1)


def _without(pairs: Edges, known: Edges, count: int) -> Edges:
    """The pairs that are not among the known ones."""
    return pairs[~np.isin(pairs @ [count, 1], known @ [count, 1])]


def _alike(of: Thumbnails, pairs: Edges, angle: int) -> NDArray[np.bool_]:
    """Which of the pairs, (k, 2), are alike with the first rotated by about `angle`: (k,)."""
    alike = np.zeros(len(pairs), bool)
    for start in range(0, len(pairs), PART):
        a, b = (of[column] for column in pairs[start : start + PART].T)
        (small, large), (other, other_large) = floats(a), floats(b)
        whole, disc = torch.ones(small.shape[1:]), disc_mask(large.shape[-1])
        found = torch.zeros(len(a), dtype=torch.bool)
        if angle == 0:
            found = _correlations(parts_of(small, whole), parts_of(other, whole)) > ALIKE
        plain = parts_of(other_large, disc)
        for more in BETWEEN:
            turned = parts_of(rotated(large, angle + more), disc)
            found |= _correlations(turned, plain) > ALIKE_TURNED
        alike[start : start + PART] = found.numpy()
    return alike


def _correlations(a: Parts, b: Parts) -> Tensor:
    """(n,): the larger correlation of two pictures each, straight or with one mirrored."""
    return (a[0] * b[0]).sum(1) + (a[1] * b[1]).sum(1).abs()
