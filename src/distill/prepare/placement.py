"""Which side of a set a photo is on: as remembered, by the split, or beside its near-duplicates.

Or on none: drop=FILE lists pictures to leave out, see data.dropped.
"""

import warnings
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from distill.core.engine import HERE, Engine
from distill.core.errors import counted
from distill.data import photo_table
from distill.data.dropped import DropList, drop_list
from distill.data.duplicates import find_near_duplicates
from distill.data.manifest import Manifest
from distill.data.photo_table import SIDES, PhotoRow
from distill.data.photos import Photo, Side, group_of
from distill.data.split import NO_EDGES, Edges, new_sides
from distill.prepare.pair_maker import PairStore


@dataclass(frozen=True)
class Placement:
    """The photos of a set in order, the side of each, and what the set shall remember.

    `bridging` are photos that belong to two sides (key → reason), `drops` what is left out,
    `left_out` how many photos that is; `obsolete` what the store has of their pairs, `remembered`
    whether the set holds all this already.
    """

    sides: list[tuple[Photo, Side]]
    rows: list[PhotoRow]
    bridging: dict[str, str]
    drops: DropList
    left_out: int
    obsolete: Sequence[Any]
    remembered: bool

    @property
    def counts(self) -> dict[str, int]:
        near = sum(row.near_duplicate for row in self.rows)
        return {"near_duplicates": near, "bridging": len(self.bridging), "dropped": self.left_out}


def place_photos(
    photos: Sequence[Photo],
    manifest: Manifest,
    store: PairStore,
    drop: Path | None = None,
    restore: Path | None = None,
    engine: Engine = HERE,
) -> Placement:
    """Place every photo; changes nothing on disk but the cache of thumbnails.

    What the set has placed stays where it is. `drop` adds to its list of dropped ones, `restore`
    takes out of it. `engine` makes the thumbnails.
    """
    known = photo_table.read_rows(store.folder)
    there = {photo_table.pair_of(name): side for side in SIDES for name in store.pairs[side]}
    before = photo_table.read_dropped(store.folder / photo_table.DROPPED)
    more, back = (photo_table.read_dropped(each) if each else [] for each in (drop, restore))
    drops = drop_list(before, more, back, photos, known, there)
    if unknown := drops.unknown:
        first = f"the first: {unknown[0]!r}" if len(unknown) > 1 else repr(unknown[0])
        count = f"{counted(len(unknown), 'line')} name" if len(unknown) > 1 else "a line names"
        warnings.warn(f"drop: {count} no photo, {first}", stacklevel=2)
    kept = [photo for photo in photos if photo.pair_name not in drops.pairs]
    gone = known.keys() - {photo.pair_name for photo in kept} - drops.pairs
    orphans = [known[pair] for pair in sorted(gone & there.keys())]
    rows = {photo.pair_name: row for photo in kept if (row := _row(photo, known, there))}
    settled = len(rows) == len(kept) and not known.keys() & drops.pairs
    if not settled:
        # A pair whose photo is gone: its copy of the photo still keeps near-duplicates beside it.
        held = [(row, there[row.pair]) for row in orphans]
        beside = [(Photo(store.photo(side, row.pair), row.photo), side) for row, side in held]
        rows = _place(kept, rows, beside, manifest, engine)
    placed = [(photo, rows[photo.pair_name]) for photo in kept]
    written = [*(row for _, row in placed), *orphans]
    obsolete = store.obsolete(drops.pairs)
    same = not known or list(known.values()) == written
    return Placement(
        sides=[(photo, row.side) for photo, row in placed if row.side],
        rows=written,
        bridging={photo.key: row.reason for photo, row in placed if row.side is None},
        drops=drops,
        left_out=len(photos) - len(kept),
        obsolete=obsolete,
        remembered=settled and same and drops.lines == before and not obsolete,
    )


def _row(photo: Photo, known: dict[str, PhotoRow], there: dict[str, Side]) -> PhotoRow | None:
    """What the set knows of a photo; a set from before photos.tsv shows it by its pairs."""
    row, side = known.get(photo.pair_name), there.get(photo.pair_name)
    if side and (row is None or row.side != side):
        return PhotoRow.of(photo, side)
    return row


def _place(
    kept: Sequence[Photo],
    rows: dict[str, PhotoRow],
    orphans: Sequence[tuple[Photo, Side]],
    manifest: Manifest,
    engine: Engine,
) -> dict[str, PhotoRow]:
    """A row for every photo, new ones placed; those left out before are tried again."""
    photos = [*kept, *(photo for photo, _ in orphans)]
    placed = [rows[p.pair_name].side if p.pair_name in rows else None for p in kept]
    sides = [*placed, *(side for _, side in orphans)]
    one_side = len({photo.side for photo in photos}) == 1 and photos[0].side is not None
    edges = NO_EDGES if one_side else find_near_duplicates(photos, manifest.photos, engine)
    placer = SidePlacer(photos, sides, edges)
    placer.run(manifest.val_fraction, manifest.seed, manifest.test_fraction)
    near = set(edges.ravel().tolist())
    return {
        photo.pair_name: PhotoRow.of(photo, placer.sides[i], i in near, placer.bridging.get(i, ""))
        for i, photo in enumerate(kept)
    }


class SidePlacer:
    """Places photos breadth-first from those that have a side.

    `sides` holds the side of what is placed and None for new photos; after `run` None is left only
    for those in `bridging`: index → reason. A new photo near one side joins it, one near two sides
    is left out, and one near none goes where the split of all photos puts it. Near are the two ends
    of an edge (near-duplicates) and photos of one name group. A photo that belongs to a side by
    itself (`Photo.side`) is left out when it is near another one, training last.
    """

    def __init__(self, photos: Sequence[Photo], sides: Sequence[Side | None], edges: Edges) -> None:
        self.photos, self.sides = photos, list(sides)
        self.bridging: dict[int, str] = {}
        self._edges = edges
        both = np.concatenate([edges, edges[:, ::-1]])
        both = both[np.lexsort((both[:, 1], both[:, 0]))]
        # The photos at the other ends of each photo's edges, in order.
        self._others = both[:, 1]
        self._starts = np.searchsorted(both[:, 0], np.arange(len(photos) + 1))
        # The name group of each photo that is free to move; a group on several sides is none.
        names = [None if p.side else group_of(p.key) for p in photos]
        on: dict[str | None, set[Side]] = defaultdict(set)
        for name, side in zip(names, self.sides, strict=True):
            if side:
                on[name].add(side)
        self._group = [None if len(on[name]) > 1 else name for name in names]
        self._members: dict[str, list[int]] = defaultdict(list)
        for i, group in enumerate(self._group):
            if group is not None:
                self._members[group].append(i)
        self._met: dict[str, int] = {}  # group → the first of it that has a side
        self._queue = deque(i for i, side in enumerate(self.sides) if side)
        for i in self._queue:
            self._meet(i)

    def run(self, val_fraction: float, seed: int, test_fraction: float = 0.0) -> None:
        """Place every new photo."""
        for side in reversed(SIDES):
            self._settle(i for i in self._open() if self.photos[i].side == side)
        while self._queue:
            i = self._queue.popleft()
            group = self._group[i]
            # Its near-duplicates, and once for every group all of it.
            members = self._members.pop(group, []) if group is not None else []
            near = [*self._similar(i), *members]
            self._settle(j for j in near if self.sides[j] is None and j not in self.bridging)
        left = list(self._open())
        if left:
            # Only a new set, of one component, has it split so that no side is empty.
            begun = any(self.sides) or bool(self.bridging)
            fresh = new_sides(
                self.photos, val_fraction, seed, self._edges, test_fraction, together=begun
            )
            for i in left:
                self.sides[i] = fresh[i]

    def _similar(self, i: int) -> list[int]:
        return self._others[self._starts[i] : self._starts[i + 1]].tolist()

    def _open(self) -> Iterator[int]:
        return (i for i, s in enumerate(self.sides) if s is None and i not in self.bridging)

    def _settle(self, new: Iterable[int]) -> None:
        for i in new:
            group, photo_side = self._group[i], self.photos[i].side
            near = [*self._similar(i), *([self._met[group]] if group in self._met else [])]
            beside = {side: j for j in reversed(near) if (side := self.sides[j])}
            if len(beside) > 1 or (photo_side and beside.keys() - {photo_side}):
                words = {"train": "training", "val": "validation", "test": "test"}
                those = (
                    f"{self.photos[beside[side]].key!r} in {words[side]}"
                    for side in SIDES
                    if side in beside
                )
                self.bridging[i] = (
                    f"belongs with {' and with '.join(those)} (a near-duplicate, or of one name)"
                )
            elif photo_side or beside:
                self.sides[i] = photo_side or next(iter(beside))
                self._queue.append(i)
                self._meet(i)

    def _meet(self, i: int) -> None:
        group = self._group[i]
        if group is not None:
            self._met.setdefault(group, i)
