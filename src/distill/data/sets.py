"""Datasets of pairs and of photos, addressed by a position in an endless stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from distill.data.layouts import Pair
from distill.data.photos import BadPhoto, Photo, centre_square, read_photo
from distill.data.pictures import to_bytes
from distill.data.shares import Indices, Share, counts
from distill.data.views import random_square, recolour, rng_for, same_crop_and_flip
from distill.errors import DistillError

# photo: uint8 (H, W, 3), name: str and, for pairs, target: uint8 (H, W, 3 or 4). Bytes as they lie
# in the file: a quarter of what floats take on their way from a worker. DistillData converts them.
Sample = dict[str, Any]


class Stream(Sampler[int]):
    """Positions of one long epoch: `total` of them, starting at `start`, in batches of `batch`.

    A dataset turns a position into a picture and its augmentation, so a run that goes on at
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
        for first in range(self.start + self.rank * self.batch, self.total, self._stride):
            yield from range(first, first + self.batch)

    @property
    def _stride(self) -> int:
        return self.world * self.batch


class _Streamed(Dataset):
    """Position → item: a fresh order for every pass, from the seed alone.

    With `shares` every pass takes of each folder its share of the positions: each folder's
    pictures in an endless shuffled stream of their own, a part of it per pass, then mixed.
    """

    def __init__(
        self, count: int, seed: int, shuffle: bool, shares: Sequence[Share] | None = None
    ) -> None:
        self.count, self.seed, self.shuffle = count, seed, shuffle
        self.shares = list(zip(shares, counts(shares, count), strict=True)) if shares else None
        self._pass, self._order = -1, np.arange(count)

    def __len__(self) -> int:
        return self.count

    def index(self, position: int) -> int:
        if not self.shuffle:
            return position
        number, offset = divmod(position, self.count)
        if number != self._pass:
            self._pass, self._order = number, self._ordered(number)
        return int(self._order[offset])

    def _ordered(self, number: int) -> Indices:
        if not self.shares:
            return rng_for(self.seed, number).permutation(self.count)
        parts = [
            self._part(folder, share.members, range(number * taken, (number + 1) * taken))
            for folder, (share, taken) in enumerate(self.shares)
        ]
        return rng_for(self.seed, number).permutation(np.concatenate(parts))

    def _part(self, folder: int, members: Indices, places: range) -> Indices:
        """The members at these places of the folder's endless stream of shuffled passes."""
        first, last = places.start // len(members), max(places.stop - 1, 0) // len(members)
        passes = [
            rng_for(self.seed, "folder", folder, each).permutation(members)
            for each in range(first, last + 1)
        ]
        start = places.start - first * len(members)
        return np.concatenate(passes)[start : start + len(places)]


class PairSet(_Streamed):
    """Pairs as {photo (H, W, 3), target (H, W, 3 or 4), name}, 8-bit.

    With `train`, position p gives the picture p of an endless shuffled stream, cropped and
    mirrored the same on both sides; without, index p gives pair p as it is. A pair that cannot be
    read is replaced by the next one and named once.
    """

    def __init__(
        self,
        pairs: Sequence[Pair],
        size: int,
        train: bool,
        crop_size: int | None = None,
        flip: bool = True,
        alpha: bool = False,
        seed: int = 0,
        shares: Sequence[Share] | None = None,
    ) -> None:
        super().__init__(len(pairs), seed, train, shares)
        self.pairs, self.size, self.train, self.alpha = pairs, size, train, alpha
        self.crop_size, self.flip = crop_size, flip
        self._bad: set[int] = set()

    def __getitem__(self, position: int) -> Sample:
        pair, photo, target = self._read(self.index(position))
        if self.train:
            rng = rng_for(self.seed, "augment", position)
            photo, target = same_crop_and_flip([photo, target], self.crop_size, self.flip, rng)
        return {"photo": photo.contiguous(), "target": target.contiguous(), "name": pair.name}

    def _read(self, first: int) -> tuple[Pair, Tensor, Tensor]:
        for step in range(self.count):
            index = (first + step) % self.count
            pair = self.pairs[index]
            try:
                photo, target = pair.read(self.alpha)
            except BadPhoto as reason:
                if index not in self._bad:
                    self._bad.add(index)
                    print(f"skipped {str(pair.photo)!r}: {reason}")
                continue
            return pair, self._square(photo), self._square(target)
        raise DistillError("no pair of the set can be read")

    def _square(self, image: Image.Image) -> Tensor:
        if image.size == (self.size, self.size):
            return to_bytes(image)
        return to_bytes(centre_square(image, self.size))


class PhotoSet(_Streamed):
    """Photos as {photo (S, S, 3), name}, 8-bit, to be labelled on the fly.

    With `train`: random squares of the photo with changed colours, drawn from the position; the
    teacher sees what the student sees, so even colours may change. Without: centre squares.
    """

    def __init__(
        self,
        photos: Sequence[Photo],
        size: int,
        train: bool,
        crop: float = 1.0,
        colour: float = 0.2,
        seed: int = 0,
        shares: Sequence[Share] | None = None,
    ) -> None:
        super().__init__(len(photos), seed, train, shares)
        self.photos, self.size, self.train = list(photos), size, train
        self.crop, self.colour = crop, colour
        self._bad: set[int] = set()

    def __getitem__(self, position: int) -> Sample:
        photo, image = self._read(self.index(position))
        rng = rng_for(self.seed, "augment", position)
        if self.train:
            square = random_square(image, self.size, self.crop, rng)
            square = recolour(square, self.colour, rng)
        else:
            square = centre_square(image, self.size, self.crop)
        return {"photo": to_bytes(square), "name": photo.key}

    def _read(self, first: int) -> tuple[Photo, Image.Image]:
        for step in range(self.count):
            index = (first + step) % self.count
            photo = self.photos[index]
            try:
                return photo, read_photo(photo.path)
            except BadPhoto as reason:
                if index not in self._bad:
                    self._bad.add(index)
                    print(f"skipped {str(photo.path)!r}: {reason}")
        raise DistillError("no photo of the set can be read")
