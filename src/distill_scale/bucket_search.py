"""Near-duplicates among more photos than can all be compared: only those that share a bucket are.

Buckets are those of k-means over the discs at 8×8 (`screened_parts`), made with faiss. Every photo
lies in one. It is looked for as it is, mirrored and rotated by every one of ANGLES, each form in
the PROBES buckets nearest to it. What passes the screen is compared as all photos are in
`duplicates`, so a pair that is found is one there too, but for those at the very edge of the
threshold, which depend on which one is rotated.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from distill.core.errors import counted, extra_package
from distill.core.progress import bar
from distill.data.duplicates import LargeSearch
from distill.data.split import NO_EDGES, Edges
from distill.data.thumbnails import (
    ALIKE,
    ALIKE_TURNED,
    ANGLES,
    BETWEEN,
    SCREEN,
    Parts,
    Thumbnails,
    disc_mask,
    floats,
    parts_of,
    rotated,
    screened_parts,
)

BUCKETS = 256  # at least; of n photos √n, so that the work grows with n√n
PROBES = 2
SAMPLES = 256  # photos a bucket, of which k-means finds the centres
# Of discs as they are or mirrored: those of pictures alike at 16×16, corners included, may differ.
SCREEN_STRAIGHT = 0.88
BLOCK = 8192  # photos looked for at once
PRODUCTS = 1 << 20  # of forms and discs at once: 4 MiB, which stay in the cache
PART = 4096  # pairs compared at once: 32 MiB of pictures


def faiss_library(count: int) -> Any:
    """faiss. Raises DistillError where it is missing; `count` photos are what needs it."""
    what = f"{counted(count, 'photo')}: near-duplicates among so many"
    return extra_package("faiss", what, "pip install 'distill[scale]', or take fewer photos")


class BucketSearch(LargeSearch):
    """Compares the photos that share a bucket. Raises DistillError where faiss is not installed."""

    def __init__(self, count: int) -> None:
        faiss_library(count)

    def pairs(self, of: Thumbnails, first: int | None) -> Edges:
        return pairs_in_buckets(of, first)


def pairs_in_buckets(of: Thumbnails, first: int | None = None) -> Edges:
    """The pairs (smaller, larger) that are alike and share a bucket, sorted, each once.

    With `first` only those of one of the first so many with one of the others. Raises DistillError
    where faiss is not installed.
    """
    buckets = _Buckets(of, 0 if first is None else first)
    edges, end = [NO_EDGES], len(of) if first is None else first
    with bar(end, "photo", "near-duplicates", leave=False) as progress:
        for start in range(0, end, BLOCK):
            block = of[start : min(start + BLOCK, end)]
            hits, known = _screened(block, start, buckets), NO_EDGES
            for angle in sorted(ANGLES, key=abs):  # most pairs are alike as they are
                new = ~np.isin(hits[angle] @ [len(of), 1], known @ [len(of), 1])
                near = hits[angle][new]
                known = np.concatenate([known, near[_alike(of, near, angle)]])
            edges.append(np.sort(known, axis=1).astype(np.int32))
            progress.update(len(block))
    return np.unique(np.concatenate(edges), axis=0)


def _screened(block: Thumbnails, start: int, buckets: _Buckets) -> dict[int, Edges]:
    """For each angle the pairs, each once, of a photo of the block rotated by it and one like it.

    The block is of the photos from `start` on.
    """
    _, large = floats(block)
    forms = []
    for angle in ANGLES:
        even, odd = screened_parts(large, angle)
        screen = SCREEN if angle else SCREEN_STRAIGHT
        forms += [torch.cat([even, sign * odd], 1) / screen for sign in (1, -1)]
    rows, photos = buckets.near(torch.cat(forms))
    form, row = np.divmod(rows, len(block))
    pairs = np.stack([row + start, photos], 1)
    others = pairs[:, 0] != pairs[:, 1]
    return {
        angle: np.unique(pairs[others & (form // 2 == number)], axis=0)
        for number, angle in enumerate(ANGLES)
    }


class _Buckets:
    """The discs of the photos from `start` on, by bucket; flat ones, like none, left out.

    Those of a bucket lie one after another, so that they are compared by one product of matrices
    with all that is looked for there.
    """

    def __init__(self, of: Thumbnails, start: int) -> None:
        blocks = (_discs(of[i : i + BLOCK]) for i in range(start, len(of), BLOCK))
        discs = torch.cat([_discs(of[:0]), *blocks])
        self._index = _index(discs, len(of))
        bucket = self._nearest(discs, 1)[:, 0]
        bucket[~discs.any(1).numpy()] = self._index.nlist  # behind the last, where none looks
        order = np.argsort(bucket, kind="stable")
        self._photos = start + order
        self._discs = discs[torch.from_numpy(order)]
        self._starts = _starts(bucket[order], self._index.nlist)

    def near(self, forms: Tensor) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows of `forms`, (m, d), and photos whose disc has a product above 1 with them.

        Looked for in the PROBES buckets nearest to each form.
        """
        probed = self._nearest(forms, PROBES)
        order = np.argsort(probed, axis=None, kind="stable")
        starts = _starts(probed.ravel()[order], self._index.nlist)
        looking = order // probed.shape[1]
        rows, photos = [], []
        for bucket in np.flatnonzero(np.diff(starts) * np.diff(self._starts)):
            begin, end = self._starts[bucket : bucket + 2]
            step = max(1, PRODUCTS // int(end - begin))
            for i in range(starts[bucket], starts[bucket + 1], step):
                chosen = looking[i : min(i + step, starts[bucket + 1])]
                product = forms[torch.from_numpy(chosen)] @ self._discs[begin:end].T
                row, member = np.divmod(np.flatnonzero((product > 1).numpy()), end - begin)
                rows.append(chosen[row])
                photos.append(self._photos[begin + member])
        none = np.empty(0, np.int64)
        return np.concatenate([none, *rows]), np.concatenate([none, *photos])

    def _nearest(self, forms: Tensor, count: int) -> NDArray[np.int64]:
        """(m, count): the nearest buckets of each; of fewer buckets all."""
        count = min(count, self._index.nlist)
        return self._index.quantizer.search(forms.numpy(), count)[1]


def _starts(buckets: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """(count + 1,): where each of so many buckets starts among sorted numbers of buckets."""
    return np.searchsorted(buckets, np.arange(count + 1))


def _index(discs: Tensor, photos: int) -> Any:
    """faiss's index, which has the centres of the buckets of `discs`; none is added to it."""
    faiss = faiss_library(photos)
    count, size = discs.shape
    buckets = max(min(BUCKETS, count // 8), math.isqrt(count), 1)
    sampled = np.linspace(0, max(count - 1, 0), min(count, SAMPLES * buckets)).astype(np.int64)
    sample = discs[torch.from_numpy(sampled)].numpy()
    index = faiss.index_factory(size, f"IVF{buckets},Flat", faiss.METRIC_INNER_PRODUCT)
    index.cp.min_points_per_centroid = 1
    sample = sample[sample.any(1)]
    if len(sample) < buckets:
        sample = np.concatenate([sample, np.eye(size, dtype=np.float32)])
    index.train(sample)
    return index


def _discs(of: Thumbnails) -> Tensor:
    _, large = floats(of)
    return torch.cat(screened_parts(large), 1)


def _alike(of: Thumbnails, pairs: Edges, angle: int) -> NDArray[np.bool_]:
    """Which of the pairs, (k, 2), are alike with the first rotated by about `angle`: (k,)."""
    alike = np.zeros(len(pairs), bool)
    for start in range(0, len(pairs), PART):
        a, b = (of[column] for column in pairs[start : start + PART].T)
        (small, large), (other, other_large) = floats(a), floats(b)
        whole, disc = torch.ones(small.shape[1:]), disc_mask(large.shape[-1])
        matches = torch.zeros(len(a), dtype=torch.bool)
        if angle == 0:
            matches = _correlations(parts_of(small, whole), parts_of(other, whole)) > ALIKE
        plain = parts_of(other_large, disc)
        for more in BETWEEN:
            turned = parts_of(rotated(large, angle + more), disc)
            matches |= _correlations(turned, plain) > ALIKE_TURNED
        alike[start : start + PART] = matches.numpy()
    return alike


def _correlations(a: Parts, b: Parts) -> Tensor:
    """(n,): the larger correlation of two pictures each, straight or with one mirrored."""
    return (a[0] * b[0]).sum(1) + (a[1] * b[1]).sum(1).abs()
