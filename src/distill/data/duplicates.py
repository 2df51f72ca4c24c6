"""Near-duplicates: photos whose small grey pictures correlate, one perhaps mirrored or rotated.

Straight and mirrored ones are found by the centre square at 16×16. Measured on 4,600 aligned faces
(LFW), 525 portraits with known copies and 669 other pictures: among 10.6 million pairs of different
persons three are above 0.95, and 172 of 178 portraits with a copy are found. At 8×8 there are 96
such pairs, at 32×32 a copy less is found, and colour changes neither.

Those rotated about the centre by up to 25° are found by the disc inside the square: screened at
8×8, every 6°, and what passes is compared at 32×32, every 1.5°. Measured on the above and 2,834
photos more: of 1,298 rotated by any such angle (half of them mirrored, at JPEG quality 85) 1,293
are found, 82 pairs in the portraits, all of them copies by eye, and not one pair more of different
pictures. Not found are copies that are cut out again, shifted or enlarged.

10,000 photos take 3.9 s on one CPU thread, 0.7 s of it for straight and mirrored ones, and the time
grows with the square. So every two are compared up to EXACT photos; among more, those that a
plug-in's `LargeSearch` chooses.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from distill.core import nodes, plugins
from distill.core.engine import HERE, Engine
from distill.core.errors import DistillError, counted
from distill.data.photos import Photo
from distill.data.split import NO_EDGES, Edges
from distill.data.thumbnails import (
    ALIKE,
    ALIKE_TURNED,
    ANGLES,
    BETWEEN,
    SCREEN,
    Thumbnails,
    correlation,
    disc_mask,
    floats,
    parts_of,
    rotated,
    screened_parts,
    thumbnails,
)

EXACT = 200_000  # photos of which every two are compared: half an hour on one CPU thread
BLOCK = 2048  # photos compared at once with as many others: 16 MiB of correlations


class LargeSearch(ABC):
    """Near-duplicates among more than EXACT photos: the class of `provides: near_duplicates` in a
    plug-in's plugin.yaml.

    It is built for `count` photos before any is read. Raises DistillError where something is
    missing that it needs.
    """

    @abstractmethod
    def __init__(self, count: int) -> None: ...

    @abstractmethod
    def pairs(self, of: Thumbnails, first: int | None) -> Edges:
        """The pairs (smaller, larger) that are alike, sorted, each once; with `first` only those
        of one of the first so many with one of the others."""


def large_search(count: int) -> LargeSearch:
    """That of the first plug-in that has one. Raises DistillError."""
    for name in plugins.values("provides", "near_duplicates"):
        node = {"_target_": name}
        return nodes.part("provides.near_duplicates", node, LargeSearch, count=count)
    raise DistillError(
        f"{counted(count, 'photo')}: no plug-in is there that looks for near-duplicates among more "
        f"than {EXACT:,}; take fewer photos"
    )


def find_near_duplicates(photos: Sequence[Photo], source: str, engine: Engine = HERE) -> Edges:
    """Every pair of near-duplicates, as indices (smaller, larger). `source` names the cache.

    `engine` makes thumbnails that are missing there.
    Raises DistillError for more than EXACT photos without a `LargeSearch`.
    """
    if len(photos) > EXACT:
        large_search(len(photos))  # what is missing is said before a million photos are read
    return similar_pairs(thumbnails(photos, source, engine))


def similar_pairs(of: Thumbnails, first: int | None = None) -> Edges:
    """The pairs (smaller, larger) that are alike: straight, mirrored or rotated.

    With `first` only those of one of the first so many with one of the others. Raises DistillError
    for more than EXACT, or as many comparisons, without a `LargeSearch`.
    """
    comparisons = len(of) ** 2 / 2 if first is None else first * (len(of) - first)
    if comparisons > EXACT**2 / 2:
        return large_search(len(of)).pairs(of, first)
    return all_pairs(of, first)


def all_pairs(of: Thumbnails, first: int | None = None) -> Edges:
    """The same, every two compared, block by block."""
    edges = [NO_EDGES]
    whole = torch.ones(of["small"].shape[1:])
    end = len(of) if first is None else first
    for i in range(0, end, BLOCK):
        small, large = floats(of[i : min(i + BLOCK, end)])
        straight = parts_of(small, whole)
        discs = [screened_parts(large, angle) for angle in ANGLES]
        for j in range(i if first is None else first, len(of), BLOCK):
            others, large_others = floats(of[j : j + BLOCK])
            alike = correlation(straight, parts_of(others, whole)) > ALIKE
            screened = screened_parts(large_others)
            for angle, disc in zip(ANGLES, discs, strict=True):
                near = _pairs((correlation(disc, screened) > SCREEN) & ~alike, i, j)
                if len(near):
                    passed = near[_turned_alike(large, large_others, near, angle)]
                    alike[passed[:, 0], passed[:, 1]] = True
            edges.append((_pairs(alike, i, j) + torch.tensor([i, j])).int().numpy())
    return np.concatenate(edges)


def _turned_alike(large: Tensor, others: Tensor, near: Tensor, angle: float) -> Tensor:
    """Which of the pairs `near`, (k, 2), are alike with the first one rotated: (k,).

    They are rows of `large` and `others`, (n, S, S) and (m, S, S). Tried are the angles beside
    `angle`.
    """
    (rows, row), (columns, column) = (each.unique(return_inverse=True) for each in near.T)
    disc = disc_mask(large.shape[-1])
    plain, alike = parts_of(others[columns], disc), torch.zeros(len(near), dtype=torch.bool)
    for more in BETWEEN:
        turned = parts_of(rotated(large[rows], angle + more), disc)
        alike |= (correlation(turned, plain) > ALIKE_TURNED)[row, column]
    return alike


def _pairs(alike: Tensor, i: int, j: int) -> Tensor:
    """Where a block that starts at (i, j) is true, (k, 2): every pair once, none with itself."""
    edges = alike.nonzero()
    return edges[edges[:, 0] + i < edges[:, 1] + j]
