"""Newcomers to a split that is already there: each joins its twins, and nothing placed moves."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from distill.data.photos import Photo, Side, group_of
from distill.data.sides import Edges, fresh_sides

_WORDS = {"train": "training", "val": "validation"}


class Placing:
    """Places photos breadth-first from those that have a side.

    `sides` holds the side of what is placed and None for newcomers; after `run` None is left only
    for those in `dropped`: index → reason. A newcomer near one side joins it, one near both sides
    is dropped, and one near none goes where the split of all photos puts it. A photo that belongs
    to a side by itself (`Photo.side`) is dropped when it is near the other one, validation first.
    """

    def __init__(self, photos: Sequence[Photo], sides: Sequence[Side | None], twins: Edges) -> None:
        self.photos, self.sides = photos, list(sides)
        self.dropped: dict[int, str] = {}
        self._edges, self._twins = twins, _Neighbours(len(photos), twins)
        self._group = self._groups()
        self._members: dict[str, list[int]] = defaultdict(list)
        for i, group in enumerate(self._group):
            if group is not None:
                self._members[group].append(i)
        self._met: dict[str, int] = {}  # group → the first of it that has a side
        self._queue = deque(i for i, side in enumerate(self.sides) if side)
        for i in self._queue:
            self._meet(i)

    def run(self, val_fraction: float, seed: int) -> None:
        """Place every newcomer."""
        for side in ("val", "train"):
            self._settle(i for i in self._open() if self.photos[i].side == side)
        while self._queue:
            self._settle(self._near(self._queue.popleft()))
        left = list(self._open())
        if left:
            fresh = fresh_sides(self.photos, val_fraction, seed, self._edges)
            for i in left:
                self.sides[i] = fresh[i]

    def _groups(self) -> list[str | None]:
        """The name group of each photo that is free to move; a group on both sides is none."""
        names = [None if p.side else group_of(p.key) for p in self.photos]
        on: dict[str | None, set[Side]] = defaultdict(set)
        for name, side in zip(names, self.sides, strict=True):
            if side:
                on[name].add(side)
        return [None if len(on[name]) == 2 else name for name in names]

    def _open(self) -> Iterator[int]:
        return (i for i, s in enumerate(self.sides) if s is None and i not in self.dropped)

    def _near(self, i: int) -> Iterator[int]:
        """Newcomers beside photo `i`: its twins, and once for every group all of the group."""
        group = self._group[i]
        members = self._members.pop(group, []) if group is not None else []
        for j in [*self._twins[i], *members]:
            if self.sides[j] is None and j not in self.dropped:
                yield j

    def _settle(self, newcomers: Iterable[int]) -> None:
        for i in newcomers:
            beside = self._beside(i)
            own = self.photos[i].side
            if len(beside) == 2 or (own and beside.keys() - {own}):
                self.dropped[i] = self._reason(beside)
            elif own or beside:
                self.sides[i] = own or next(iter(beside))
                self._queue.append(i)
                self._meet(i)

    def _beside(self, i: int) -> dict[Side, int]:
        """For each side a photo of it that is a twin of `i` or of its name."""
        group = self._group[i]
        near = [*self._twins[i], *([self._met[group]] if group in self._met else [])]
        return {side: j for j in reversed(near) if (side := self.sides[j])}

    def _meet(self, i: int) -> None:
        group = self._group[i]
        if group is not None:
            self._met.setdefault(group, i)

    def _reason(self, beside: dict[Side, int]) -> str:
        near = (f"{self.photos[i].key!r} in {_WORDS[side]}" for side, i in sorted(beside.items()))
        return f"belongs with {' and with '.join(near)} (a near-duplicate, or of one name)"


class _Neighbours:
    """The twins of a photo, in order, out of an array of pairs."""

    def __init__(self, count: int, twins: Edges) -> None:
        both = np.concatenate([twins, twins[:, ::-1]])
        both = both[np.lexsort((both[:, 1], both[:, 0]))]
        self._starts = np.searchsorted(both[:, 0], np.arange(count + 1))
        self._others = both[:, 1]

    def __getitem__(self, i: int) -> list[int]:
        return self._others[self._starts[i] : self._starts[i + 1]].tolist()
