"""Paired pictures that already exist: recognise how a folder lays them out.

Below ROOT, or below ROOT/train and ROOT/val (also `valid`, `test`):
  photo/ + stylized/    as distill.prepare writes them
  A/ + B/               the same file names in both
  faces/ + STYLE/       the same file names in both
  pictures only         side by side: photo left, drawing right
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import numpy as np
from PIL import Image

from distill.data.photos import SUFFIXES, BadPhoto, Photo, Side, read_photo
from distill.data.sides import split
from distill.errors import DistillError

_NAMED = (("photo", "stylized"), ("A", "B"))
_VAL = ("val", "valid", "test")


@dataclass(frozen=True)
class Pair:
    """Photo and drawing; `target` is None where both stand side by side in one picture."""

    photo: Path
    target: Path | None

    @property
    def name(self) -> str:
        return self.photo.name

    def read(self, alpha: bool = False) -> tuple[Image.Image, Image.Image]:
        """Both pictures as RGB, the drawing as RGBA with `alpha`. Raises BadPhoto."""
        if self.target is not None:
            return read_photo(self.photo), _read_target(self.target, alpha)
        both = read_photo(self.photo)
        half = both.width // 2
        left = both.crop((0, 0, half, both.height))
        right = both.crop((both.width - half, 0, both.width, both.height))
        return left, right.convert("RGBA") if alpha else right


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


def find_pairs(root: Path, style: str, val_fraction: float, seed: int) -> dict[Side, Pairs]:
    """Both sides of a paired folder; without val/ the split goes by a hash of the names.

    A folder with val/ alone has no training side: it is there to be evaluated on.

    Raises DistillError when the folder is missing or holds none of the known layouts.
    """
    if not root.is_dir():
        raise DistillError(f"data.root={root}: no such folder")
    train = root / "train"
    val = next((root / name for name in _VAL if (root / name).is_dir()), None)
    if val is None or (not train.is_dir() and _two_folders(root, style)):
        return _split(_pairs_in(train if train.is_dir() else root, style), val_fraction, seed)
    return {
        "train": _pairs_in(train, style) if train.is_dir() else Pairs([], train),
        "val": _pairs_in(val, style),
    }


def _pairs_in(folder: Path, style: str) -> Pairs:
    two = _two_folders(folder, style)
    pairs = _matched(*two) if two else Pairs(((name, "") for name in _pictures(folder)), folder)
    if not pairs:
        raise DistillError(
            f"{folder}: no pairs found; wanted photo/ + stylized/, A/ + B/ or faces/ + {style}/ "
            "with the same file names, or pictures with photo and drawing side by side"
        )
    if not two:
        _check_side_by_side(pairs)
    return pairs


def _two_folders(folder: Path, style: str) -> tuple[Path, Path] | None:
    for left, right in (*_NAMED, ("faces", style)):
        if (folder / left).is_dir() and (folder / right).is_dir():
            return folder / left, folder / right
    return None


def _matched(photos: Path, targets: Path) -> Pairs:
    by_stem = {os.path.splitext(name)[0]: name for name in _pictures(targets)}
    found = [(name, by_stem.get(os.path.splitext(name)[0])) for name in _pictures(photos)]
    pairs = Pairs([(name, target) for name, target in found if target], photos, targets)
    if missing := len(found) - len(pairs):
        print(f"{photos.parent}: {missing} photos without a drawing of the same name are left out")
    return pairs


def _pictures(folder: Path) -> list[str]:
    """Names of picture files, in order; scandir asks the disk nothing more about a plain file."""
    with os.scandir(folder) as entries:
        return sorted(
            entry.name
            for entry in entries
            if not entry.name.startswith(".")  # not macOS's ._NAME
            and os.path.splitext(entry.name)[1].lower() in SUFFIXES
            and entry.is_file()
        )


def _split(pairs: Pairs, val_fraction: float, seed: int) -> dict[Side, Pairs]:
    by_photo = {Photo(pair.photo, pair.name): i for i, pair in enumerate(pairs)}
    sides = split(by_photo, val_fraction, seed)
    return {side: pairs.take(by_photo[p] for p in photos) for side, photos in sides.items()}


def _check_side_by_side(pairs: Pairs) -> None:
    """Photos alone must not pass for pairs: the first readable picture must be wide."""
    for pair in pairs:
        try:
            width, height = read_photo(pair.photo).size
        except BadPhoto:
            continue
        if width < 1.5 * height:
            raise DistillError(
                f"{pair.photo}: {width}×{height} is no side-by-side pair (twice as wide as high); "
                "for photos without drawings use photos=DIR"
            )
        return
    raise DistillError(f"{pairs[0].photo.parent}: none of its pictures can be read")


def _read_target(path: Path, alpha: bool) -> Image.Image:
    try:
        return read_photo(path, alpha=alpha)
    except BadPhoto as reason:
        raise BadPhoto(f"its drawing {str(path)!r}: {reason}") from None
