"""A pair of pictures, in two files or side by side in one, and many of them in little memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import numpy as np
from PIL import Image

from distill.core.errors import DistillError
from distill.data.decode import to_rgb
from distill.data.photos import BadPhoto, read_photo

LOOKS = 16  # targets that are looked at for transparency
OPAQUE = 255


@dataclass(frozen=True)
class Pair:
    """Photo and drawing; `target` is None where both stand side by side in one picture."""

    photo: Path
    target: Path | None

    @property
    def name(self) -> str:
        return self.photo.name

    def read(self, alpha: bool = False, swap: bool = False) -> tuple[Image.Image, Image.Image]:
        """Photo and drawing as RGB, or with `swap` drawing and photo. Raises BadPhoto.

        The second of them is RGBA with `alpha`.
        """
        if self.target is None:
            halves = _halves(read_photo(self.photo, alpha=alpha))
            first, second = reversed(halves) if swap else halves
            return to_rgb(first), second
        if swap:
            return _read_target(self.target, False), read_photo(self.photo, alpha=alpha)
        return read_photo(self.photo), _read_target(self.target, alpha)


class Pairs(Sequence[Pair]):
    """Pairs of one folder, or of two with `targets`, made when they are asked for.

    The names lie in one block of bytes: as objects, those of 200,000 pairs took 200 MB in every
    process that loads pictures.
    """

    def __init__(
        self, names: Iterable[tuple[str, str]], photos: Path, targets: Path | None = None
    ) -> None:
        # No file name holds a slash, so it can part the photo's name from the drawing's.
        rows = [os.fsencode(f"{photo}/{target}") for photo, target in names]
        self._block, self._ends = b"".join(rows), np.cumsum([0, *map(len, rows)])
        self.photos, self.targets = photos, targets

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> Pair: ...

    @overload
    def __getitem__(self, index: slice) -> Pairs: ...

    def __getitem__(self, index: int | slice) -> Pair | Pairs:
        if isinstance(index, slice):
            return self.take(range(len(self))[index])
        photo, target = self._names(range(len(self))[index])
        return Pair(self.photos / photo, self.targets / target if self.targets else None)

    def take(self, indices: Iterable[int]) -> Pairs:
        """The pairs with these indices, in this order."""
        return Pairs(map(self._names, indices), self.photos, self.targets)

    def _names(self, index: int) -> tuple[str, str]:
        row = os.fsdecode(self._block[self._ends[index] : self._ends[index + 1]])
        photo, _, target = row.partition("/")
        return photo, target


def check_transparency(root: Path, pairs: Sequence[Pair], swap: bool) -> None:
    """Raises DistillError where none of a few targets is see-through anywhere.

    What cannot be read is passed over: the training names it.
    """
    readable = 0
    for index in range(0, len(pairs), -(-len(pairs) // LOOKS) or 1):
        with suppress(BadPhoto):
            _, target = pairs[index].read(alpha=True, swap=swap)
            if np.asarray(target)[..., 3].min() < OPAQUE:
                return
            readable += 1
    if readable:
        raise DistillError(
            f"{root}: channels=4 needs targets with transparency, but all {readable} that were "
            "looked at are opaque; use channels=3, or PNG targets with an alpha channel"
        )


def _halves(both: Image.Image) -> tuple[Image.Image, Image.Image]:
    """Left and right; an odd column in the middle belongs to neither."""
    half = both.width // 2
    left = both.crop((0, 0, half, both.height))
    return left, both.crop((both.width - half, 0, both.width, both.height))


def _read_target(path: Path, alpha: bool) -> Image.Image:
    try:
        return read_photo(path, alpha=alpha)
    except BadPhoto as reason:
        raise BadPhoto(f"its drawing {str(path)!r}: {reason}") from None
