"""The split: whole groups of photos go to training or to validation, by a hash of their name.

What must stay together is a component of the graph whose edges are equal names (`group_of`) and
near-duplicates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from distill.core.errors import DistillError
from distill.data.photos import Photo, Side, group_of

Edges = NDArray[np.int32]  # (n, 2): indices of two photos that are near-duplicates
HELD_OUT = ("val", "valid", "test")  # what a folder of the validation side may be called
NO_EDGES: Edges = np.empty((0, 2), np.int32)


def split(
    photos: Iterable[Photo], val_fraction: float, seed: int, edges: Edges = NO_EDGES
) -> dict[Side, list[Photo]]:
    """Both sides, in the order given, neither of them empty unless the photos say so themselves.

    A component goes by the hash of the smallest of its group names: stable however many photos are
    added. A few photos may all fall on one side; then the components with the lowest hashes are
    held out instead (single photos, where all are one component). Raises DistillError for a single
    photo.
    """
    photos = list(photos)
    sides: dict[Side, list[Photo]] = {"train": [], "val": []}
    for photo, side in zip(photos, fresh_sides(photos, val_fraction, seed, edges), strict=True):
        sides[side].append(photo)
    return sides


def fresh_sides(
    photos: Sequence[Photo], val_fraction: float, seed: int, edges: Edges = NO_EDGES
) -> list[Side]:
    """The side of every photo, as `split` says."""
    names = [group_of(photo.key) for photo in photos]
    first = _smallest(_components(len(photos), names, edges), names)
    sides: list[Side] = [
        photo.side or ("val" if _hash(name, seed) < val_fraction * 2**64 else "train")
        for photo, name in zip(photos, first, strict=True)
    ]
    if len(set(sides)) == 2 or all(photo.side for photo in photos):
        return sides
    held_out = _few(photos, names, edges, val_fraction, seed)
    return [p.side or ("val" if i in held_out else "train") for i, p in enumerate(photos)]


def _few(
    photos: Sequence[Photo], names: list[str], edges: Edges, val_fraction: float, seed: int
) -> set[int]:
    """Which photos to hold out where the hashes put all on one side."""
    if len(photos) < 2:
        raise DistillError("one photo alone cannot be split into training and validation; add more")
    labels = next(each for each in _finer(photos, names, edges) if len(set(each)) > 1)
    ordered = sorted(set(labels), key=lambda label: _hash(label, seed))
    count = min(max(1, round(val_fraction * len(ordered))), len(ordered) - 1)
    held_out = set(ordered[:count])
    return {i for i, label in enumerate(labels) if label in held_out}


def _finer(photos: Sequence[Photo], names: list[str], edges: Edges) -> Iterator[list[str]]:
    """Ways to group the photos, the wanted one first, every photo alone last."""
    yield _smallest(_components(len(photos), names, edges), names)
    print(f"all {len(photos)} photos are one group by name or look, so they are split one by one")
    keys = [photo.key for photo in photos]
    yield _smallest(_components(len(photos), keys, edges), keys)
    yield keys


def _components(count: int, names: Sequence[str], edges: Edges) -> list[int]:
    """A label for every photo, the same for all that names and edges join."""
    parent = list(range(count))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    first: dict[str, int] = {}
    for i, name in enumerate(names):
        parent[i] = root(first.setdefault(name, i))
    for start in range(0, len(edges), 1 << 16):  # as Python's numbers only a part at a time
        for i, j in edges[start : start + (1 << 16)].tolist():
            parent[root(j)] = root(i)
    return [root(i) for i in range(count)]


def _smallest(labels: Sequence[int], names: Sequence[str]) -> list[str]:
    """The smallest name of every photo's component."""
    least: dict[int, str] = {}
    for label, name in zip(labels, names, strict=True):
        least[label] = min(name, least.get(label, name))
    return [least[label] for label in labels]


def _hash(group: str, seed: int) -> int:
    digest = hashlib.sha256(f"{seed}:{group}".encode(errors="surrogateescape"))
    return int.from_bytes(digest.digest()[:8], "big")
