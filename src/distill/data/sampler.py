"""Positions in an endless stream of pictures, what a position means, and the shares of folders."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Dataset, Sampler

from distill.core.errors import DistillError, counted
from distill.data.augment import rng_for
from distill.data.decode import BadPhoto

Content = TypeVar("Content")
Indices = NDArray[np.int64]


class StreamSampler(Sampler[int]):
    """Positions of one long epoch: `total` of them, starting at `start`, in batches of `batch`.

    A dataset turns a position into a picture and its augmentation, so a run that resumes at
    position k sees exactly what it would have seen without the interruption. Of several processes
    each takes every `world`-th batch, so that together they see the batches that one process
    would accumulate. The length is that of the whole stream: Lightning counts the completed
    batches in.
    """

    def __init__(
        self, total: int, start: int = 0, rank: int = 0, world: int = 1, batch: int = 1
    ) -> None:
        self.total, self.start, self.rank, self.world = total, start, rank, world
        self.batch = batch

    def __len__(self) -> int:
        return self.total // self.world

    def __iter__(self) -> Iterator[int]:
        first, step = self.start + self.rank * self.batch, self.world * self.batch
        for position in range(first, self.total, step):
            yield from range(position, position + self.batch)


class Share(NamedTuple):
    """The pictures of one folder, by index, and the folder's weight in training."""

    members: Indices
    weight: float


class StreamedSet(Dataset, ABC):
    """Position → item of an endless stream: a fresh order for every pass, from the seed alone.

    Without `shuffle` position p is item p; an `order`, position → item, takes the place of the
    usual one. With
    `shares` every pass takes of each folder its share of the positions: each folder's pictures in
    an endless shuffled stream of their own, a part of it per pass, then mixed. What cannot be read
    is replaced by the next one; `what` names an item in the error that none can be read.
    """

    what: str

    def __init__(
        self,
        count: int,
        seed: object,
        shuffle: bool,
        shares: Sequence[Share] | None = None,
        order: Callable[[int], int] | None = None,
    ) -> None:
        self.count, self.seed, self.shuffle, self.order = count, seed, shuffle, order
        self.shares = list(zip(shares, counts(shares, count), strict=True)) if shares else None
        self._pass, self._order = -1, np.empty(0, np.int64)
        self._bad: set[int] = set()

    def __len__(self) -> int:
        return self.count

    def index(self, position: int) -> int:
        """Which item comes at this position."""
        if not self.shuffle:
            return position
        if self.order:
            return self.order(position)
        number, offset = divmod(position, self.count)
        if number != self._pass:
            rng, self._pass = rng_for(self.seed, number), number
            if self.shares:
                parts = [
                    self._part(folder, share.members, range(number * taken, (number + 1) * taken))
                    for folder, (share, taken) in enumerate(self.shares)
                ]
                self._order = rng.permutation(np.concatenate(parts))
            else:
                self._order = rng.permutation(self.count)
        return int(self._order[offset])

    def _part(self, folder: int, members: Indices, places: range) -> Indices:
        """The members at these places of the folder's endless stream of shuffled passes."""
        first, last = places.start // len(members), max(places.stop - 1, 0) // len(members)
        passes = [
            rng_for(self.seed, "folder", folder, each).permutation(members)
            for each in range(first, last + 1)
        ]
        start = places.start - first * len(members)
        return np.concatenate(passes)[start : start + len(places)]

    @abstractmethod
    def path(self, index: int) -> object:
        """The file that a bad item is named by."""

    def first_readable(self, position: int, read: Callable[[int], Content]) -> tuple[int, Content]:
        """Index and content of the item at `position` or of the next one; names a bad one once.

        Raises DistillError where none can be read.
        """
        first = self.index(position)
        for step in range(self.count):
            index = (first + step) % self.count
            try:
                return index, read(index)
            except BadPhoto as reason:
                if index not in self._bad:
                    self._bad.add(index)
                    print(f"skipped {str(self.path(index))!r}: {reason}")
        side = "training" if self.shuffle else "held-out"
        raise DistillError(
            f"no {self.what} of the {side} set can be read ({self.count} there, first "
            f"{str(self.path(0))!r}); repair them, or add others to that set"
        )


class MixedStreams:
    """Position → which of several endless streams comes there, and at which place of it.

    Of every block of sum(`taken`) positions each stream has so many, in an order of the block's
    own, which `seed` decides.
    """

    def __init__(self, taken: Sequence[int], *seed: object) -> None:
        self.taken, self.seed, self.block = list(taken), seed, sum(taken)
        self._number, self._order, self._before = -1, np.empty(0, np.int64), np.empty(0, np.int64)

    def place(self, position: int) -> tuple[int, int]:
        """The number of the stream and a place of it."""
        number, offset = divmod(position, self.block)
        if number != self._number:
            self._number = number
            # The stream of each position of a block, and how many of it come before in the block.
            plain = np.repeat(np.arange(len(self.taken)), self.taken)
            self._order = rng_for(*self.seed, number).permutation(plain)
            self._before = np.empty(len(plain), np.int64)
            for stream, taken in enumerate(self.taken):
                self._before[self._order == stream] = np.arange(taken)
        stream = int(self._order[offset])
        return stream, number * self.taken[stream] + int(self._before[offset])


def of_one_shape(shapes: Sequence[Sequence[int]], most: int) -> list[list[int]]:
    """The numbers of pictures of these shapes, (height, width), in lists of one shape each.

    A list has at most `most` pixels, or one picture. The first of each shape decides their order.
    """
    numbers_by_shape: dict[tuple[int, ...], list[int]] = {}
    for number, shape in enumerate(shapes):
        numbers_by_shape.setdefault(tuple(shape), []).append(number)
    parts = []
    for shape, alike in numbers_by_shape.items():
        step = max(1, most // max(1, shape[0] * shape[1]))
        parts += [alike[start : start + step] for start in range(0, len(alike), step)]
    return parts


def check_weights(weights: Sequence[float] | None, folders: int) -> None:
    """Raises DistillError where there is not one weight for every folder of photos."""
    if weights is not None and len(weights) != folders:
        raise DistillError(
            f"data.weights: {counted(len(weights), 'weight')}, but the photos come from "
            f"{counted(folders, 'folder')}; give one weight for each folder of photos=[A,B]"
        )


def shares_of(
    weights: Sequence[float] | None, names: Sequence[str], folders: Sequence[str]
) -> list[Share] | None:
    """The share of every folder in `names`; `folders` says where each picture comes from.

    None where every picture counts alike. Raises DistillError for a folder without a picture.
    """
    check_weights(weights, max(1, len(names)))
    if weights is None or len(names) < 2:
        return None
    where = np.array(folders)
    shares = [Share(np.flatnonzero(where == n), w) for n, w in zip(names, weights, strict=True)]
    for name, share in zip(names, shares, strict=True):
        if not len(share.members):
            raise DistillError(f"data.weights: {name} has no picture to train on; leave it out")
    return shares


def counts(shares: Sequence[Share], count: int) -> list[int]:
    """How many of `count` positions each share takes: the largest remainders are rounded up."""
    whole = sum(share.weight for share in shares)
    exact = [count * share.weight / whole for share in shares]
    positions = [int(value) for value in exact]
    by_rest = sorted(range(len(shares)), key=lambda i: positions[i] - exact[i])
    for i in by_rest[: count - sum(positions)]:
        positions[i] += 1
    return positions
