"""The split: whole groups of photos go to one of three sides, by a hash of their name.

Training learns, validation chooses (a checkpoint, a setting), test is what results are reported on.
The hash decides, as a number in [0, 1): below `test_fraction` a photo is for testing, below
`test_fraction` + `val_fraction` for validation, else for training. What must stay together is a
component of the graph whose edges are equal names (`group_of`) and near-duplicates.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from distill.core.errors import DistillError, counted
from distill.data.photos import Photo, Side, group_of

Edges = NDArray[np.int32]  # (n, 2): indices of two photos that are near-duplicates
HELD_OUT = ("val", "valid", "test")  # what a folder of held-out pictures may be called
NO_EDGES: Edges = np.empty((0, 2), np.int32)


def split(
    photos: Iterable[Photo],
    val_fraction: float,
    seed: int,
    edges: Edges = NO_EDGES,
    test_fraction: float = 0.0,
) -> dict[Side, list[Photo]]:
    """All sides, in the order given, none of them empty unless the photos say so themselves.

    The test side is empty without a `test_fraction`. A component goes by the hash of the smallest
    of its group names: stable however many photos are added. Of few photos chance may give a side
    less than half or more than twice its share; then components are held out in the order of
    their hashes as long as the share has room for them (single photos, where all are one
    component), and of two components none is for testing. Raises DistillError for a single photo.
    """
    photos = list(photos)
    sides: dict[Side, list[Photo]] = {"train": [], "val": [], "test": []}
    fresh = new_sides(photos, val_fraction, seed, edges, test_fraction)
    for photo, side in zip(photos, fresh, strict=True):
        sides[side].append(photo)
    return sides


def grown_sides(
    photos: Sequence[Photo],
    known: Mapping[str, Side],
    val_fraction: float,
    seed: int,
    test_fraction: float = 0.0,
) -> list[Side]:
    """The side of every photo, those `known` by their keys where they were: one that came later
    joins its name's group, all others are split among themselves."""
    groups = {group_of(key): side for key, side in known.items()}
    sides = [known.get(photo.key) or groups.get(group_of(photo.key)) for photo in photos]
    new = [photo for photo, side in zip(photos, sides, strict=True) if side is None]
    fresh = iter(
        new_sides(new, val_fraction, seed, NO_EDGES, test_fraction, bool(known)) if new else ()
    )
    return [next(fresh) if side is None else side for side in sides]


def new_sides(
    photos: Sequence[Photo],
    val_fraction: float,
    seed: int,
    edges: Edges = NO_EDGES,
    test_fraction: float = 0.0,
    together: bool = False,
) -> list[Side]:
    """The side of every photo, as `split` says; `together`: one component alone is not split."""
    names = [group_of(photo.key) for photo in photos]
    first = _smallest_names(names, edges)

    def by_hash(name: str) -> Side:
        digest = _hash(name, seed)  # below 2**64
        if digest < test_fraction * 2**64:
            return "test"
        return "val" if digest < (test_fraction + val_fraction) * 2**64 else "train"

    sides = [photo.side or by_hash(name) for photo, name in zip(photos, first, strict=True)]
    shares: dict[Side, float] = {"val": val_fraction, "test": test_fraction}
    kept = all(  # every side has between half and twice its share
        not share or share * len(sides) / 2 <= sides.count(side) <= max(1, 2 * share * len(sides))
        for side, share in shares.items()
    )
    if (kept and "train" in sides) or all(photo.side for photo in photos):
        return sides
    if together and len(set(first)) == 1:
        return sides
    few = _few(photos, names, edges, seed, val_fraction, test_fraction)
    return [photo.side or side for photo, side in zip(photos, few, strict=True)]


def _few(
    photos: Sequence[Photo],
    names: list[str],
    edges: Edges,
    seed: int,
    val_fraction: float,
    test_fraction: float,
) -> list[Side]:
    """The sides of photos whose hashes miss the shares: the lowest for testing, then validation."""
    if len(photos) < 2:
        raise DistillError("one photo alone cannot be split into training and validation; add more")
    labels = _smallest_names(names, edges)
    if len(set(labels)) == 1:
        print(f"{counted(len(photos), 'photo')}: one group by name or look, so split one by one")
        keys = [photo.key for photo in photos]
        labels = _smallest_names(keys, edges)
        if len(set(labels)) == 1:
            labels = keys
    sizes = Counter(labels)
    ordered = sorted(sizes, key=lambda label: _hash(label, seed))
    sides: dict[str, Side] = dict.fromkeys(ordered, "train")
    if test_fraction and len(ordered) > 2:  # one at least is for each of the others
        sides |= dict.fromkeys(
            _groups_for(ordered[:-2], sizes, test_fraction * len(photos)), "test"
        )
    left = [label for label in ordered if sides[label] == "train"][:-1]
    sides |= dict.fromkeys(_groups_for(left, sizes, val_fraction * len(photos)), "val")
    return [sides[label] for label in labels]


def _groups_for(ordered: Sequence[str], sizes: Mapping[str, int], share: float) -> list[str]:
    """Components, the first ones first, that fit into so many photos; the smallest where none
    does."""
    room, labels = max(1, round(share)), []
    for label in ordered:
        if sizes[label] <= room:
            room -= sizes[label]
            labels.append(label)
    return labels or [min(ordered, key=lambda label: sizes[label])]


def _smallest_names(names: Sequence[str], edges: Edges) -> list[str]:
    """The smallest name of every photo's component: of all that equal names and edges join."""
    from scipy.sparse import coo_array  # heavy, and pairs that are there need no split
    from scipy.sparse.csgraph import connected_components

    first: dict[str, int] = {}
    named = np.array([first.setdefault(name, i) for i, name in enumerate(names)], np.int64)
    ends = np.concatenate([np.stack([np.arange(len(names)), named], 1), edges])
    graph = coo_array((np.ones(len(ends), bool), (ends[:, 0], ends[:, 1])), (len(names),) * 2)
    labels = connected_components(graph, directed=False)[1].tolist()
    least: dict[int, str] = {}
    for label, name in zip(labels, names, strict=True):
        least[label] = min(name, least.get(label, name))
    return [least[label] for label in labels]


def _hash(group: str, seed: int) -> int:
    digest = hashlib.sha256(f"{seed}:{group}".encode(errors="surrogateescape"))
    return int.from_bytes(digest.digest()[:8], "big")
