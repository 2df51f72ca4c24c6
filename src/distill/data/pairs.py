"""Pairs of pictures on disk: how a folder lays them out, and many of them in little memory.

Below ROOT, or below ROOT/train, ROOT/val (also `valid`) and ROOT/test:
  photo/ + stylized/    as distill.prepare writes them
  A/ + B/               the same file names in both
  faces/ + STYLE/       the same file names in both
  pictures only         side by side: photo left, target right
Two folders may hold train/, val/ and test/ each, too: A/train + B/train, A/val + B/val.
ROOT/dropped.txt lists pairs to leave out, one a line: a photo's path below ROOT, or its name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, overload

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from distill.core.errors import DistillError
from distill.data.decode import to_rgb
from distill.data.manifest import manifest_at
from distill.data.photo_table import DROPPED, SIDES, read_dropped, size_of
from distill.data.photos import SUFFIXES, BadPhoto, Photo, Side, read_photo
from distill.data.split import split

SAMPLED = 16  # targets that are looked at for transparency
OPAQUE = 255
_NAMED = (("photo", "stylized"), ("A", "B"))
_MAKE_SOME = "python -m distill.prepare recipe=pix2pix makes pairs of photos and sketches"

Two = tuple[Path, Path]


class ReadablePair(Protocol):
    """What datasets ask of a pair, wherever it lies."""

    @property
    def name(self) -> str: ...

    @property
    def photo(self) -> Path | str:
        """Where it lies, to name it by."""

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the photo in pixels, without reading them; 0 where not known."""

    def read(self, alpha: bool = False, swap: bool = False) -> tuple[Image.Image, Image.Image]: ...

    def pixels(self, swap: bool = False) -> tuple[NDArray[np.uint8], NDArray[np.uint8]] | None:
        """Both as RGB (H, W, 3), where that takes less than to read pictures; else None."""


@dataclass(frozen=True)
class Pair:
    """Photo and target; `target` is None where both stand side by side in one picture."""

    photo: Path
    target: Path | None

    @property
    def name(self) -> str:
        return self.photo.name

    @property
    def shape(self) -> tuple[int, int]:
        """Of the photo file, by its header."""
        with suppress(OSError), Image.open(self.photo) as image:
            return image.height, image.width
        return 0, 0

    def read(self, alpha: bool = False, swap: bool = False) -> tuple[Image.Image, Image.Image]:
        """Photo and target as RGB, or with `swap` target and photo. Raises BadPhoto.

        The second of them is RGBA with `alpha`.
        """
        if self.target is None:
            photo, target = _halves(read_photo(self.photo, alpha=alpha))
            return (to_rgb(target), photo) if swap else (to_rgb(photo), target)
        photo = read_photo(self.photo, alpha=alpha and swap)
        target = self._read_target(alpha=alpha and not swap)
        return (target, photo) if swap else (photo, target)

    def pixels(self, swap: bool = False) -> None:
        """A file's decoder gives pictures."""

    def read_transparent(self) -> tuple[Image.Image, Image.Image]:
        """Photo and target as RGBA. Raises BadPhoto."""
        if self.target is None:
            return _halves(read_photo(self.photo, alpha=True))
        return read_photo(self.photo, alpha=True), self._read_target(alpha=True)

    def _read_target(self, alpha: bool) -> Image.Image:
        assert self.target is not None
        try:
            return read_photo(self.target, alpha=alpha)
        except BadPhoto as reason:
            raise BadPhoto(f"its target {str(self.target)!r}: {reason}") from None


def _halves(both: Image.Image) -> tuple[Image.Image, Image.Image]:
    """The left and the right one; an odd column in the middle belongs to neither."""
    half = both.width // 2
    left, right = (both.crop((x, 0, x + half, both.height)) for x in (0, both.width - half))
    return left, right


class Pairs(Sequence[Pair]):
    """Pairs of one folder, or of two with `targets`, made when they are asked for.

    The names lie in one block of bytes: as objects, those of 200,000 pairs took 200 MB in every
    process that loads pictures.
    """

    def __init__(
        self, names: Iterable[tuple[str, str]], photos: Path, targets: Path | None = None
    ) -> None:
        # No file name holds a slash, so it can part the photo's name from the target's.
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


def check_transparency(root: Path | str, pairs: Sequence[ReadablePair], swap: bool) -> None:
    """Raises DistillError where none of a few targets is see-through anywhere.

    What cannot be read is passed over: the training names it.
    """
    readable = 0
    for index in range(0, len(pairs), -(-len(pairs) // SAMPLED) or 1):
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


def find_pairs(
    root: Path,
    style: str | None,
    val_fraction: float,
    seed: int,
    test_fraction: float = 0.0,
    with_dropped: bool = False,
    whole: bool = False,
) -> dict[Side, Pairs]:
    """All sides of a paired folder; without val/ and test/ the split goes by a hash of the names.

    The test side is empty where val/ or test/ is the only one beside train/, which validation then
    has, and where the hash splits without a `test_fraction`. A folder without train/ has no
    training side: it is there to be evaluated on. Without a `style` no folder is called by one.
    What ROOT/dropped.txt names is left out, unless `with_dropped`; the others keep their sides. Of
    a set of several sizes it gives the squares, where it has any, and with `whole` every pair.

    Raises DistillError when the folder is missing or holds none of the known layouts.
    """
    if not root.is_dir():
        raise DistillError(f"data.root={root}: no such folder")
    if (root / "shards.parquet").is_file():
        raise DistillError(f"data.root={root}: holds shards; add data=shards, or unpack them")
    sides = _all_sides(root, style, val_fraction, seed, test_fraction)
    sides = sides if with_dropped else _without_dropped(root, sides)
    if whole or not (manifest_at(root) or {}).get("sizes"):
        return sides
    squares = {side: squares_of(pairs) for side, pairs in sides.items()}
    return squares if any(map(len, squares.values())) else sides


def squares_of(pairs: Pairs) -> Pairs:
    """Those of a set of several sizes that are no whole pictures."""
    return pairs.take(i for i, pair in enumerate(pairs) if size_of(pair.name) is None)


def whole_of(pairs: Pairs, sizes: Sequence[int]) -> Pairs:
    """Those of a set of several sizes that are whole pictures of these sizes, the small first."""
    found = [(size_of(pair.name), i) for i, pair in enumerate(pairs)]
    return pairs.take(i for size, i in sorted((s, i) for s, i in found if s in sizes))


def _all_sides(
    root: Path, style: str | None, val_fraction: float, seed: int, test_fraction: float
) -> dict[Side, Pairs]:
    # val/ comes before valid/.
    named: dict[str, Side] = {"train": "train", "valid": "val", "val": "val", "test": "test"}
    two = _two_folders(root, style)
    inside = {
        side: (two[0] / name, two[1] / name)
        for name, side in named.items()
        if two and (two[0] / name).is_dir() and (two[1] / name).is_dir()
    }
    below = {side: root / name for name, side in named.items() if (root / name).is_dir()}
    if two and inside and not _pictures(two[0]):
        sides = {side: _pairs_of(root, style, each) for side, each in inside.items()}
    elif not below or (two and "train" not in below):
        sides = {"train": _pairs_of(root, style, two)}
    else:
        sides = {
            side: _pairs_of(each, style, _two_folders(each, style)) for side, each in below.items()
        }
    if sides.keys() == {"train"}:
        pairs = sides["train"]
        by_photo = {Photo(pair.photo, pair.name): i for i, pair in enumerate(pairs)}
        parts = split(by_photo, val_fraction, seed, test_fraction=test_fraction)
        return {side: pairs.take(by_photo[p] for p in photos) for side, photos in parts.items()}
    if "val" not in sides:
        sides["val"] = sides["test"]
        if "train" in sides:  # validation chooses by them, so they are no test
            del sides["test"]
    return {side: sides.get(side, Pairs([], root)) for side in SIDES}


def _without_dropped(root: Path, sides: dict[Side, Pairs]) -> dict[Side, Pairs]:
    """The sides without what the set's own list names. Raises DistillError where none is left."""
    names = {*read_dropped(root / DROPPED)}
    if not names:
        return sides
    kept = {
        side: pairs.take(
            index
            for index, pair in enumerate(pairs)
            if pair.name not in names and pair.photo.relative_to(root).as_posix() not in names
        )
        for side, pairs in sides.items()
    }
    before, after = (sum(map(len, each.values())) for each in (sides, kept))
    if not after:
        raise DistillError(f"{root / DROPPED}: names every pair there is; take lines out of it")
    if before - after:
        print(f"{root}: {before - after} pairs left out by its {DROPPED}")
    return kept


def _pairs_of(folder: Path, style: str | None, two: Two | None) -> Pairs:
    """The pairs of `two` folders, or those that stand side by side in the pictures of `folder`."""
    if two:
        photos, targets = two
        by_stem = {os.path.splitext(name)[0]: name for name in _pictures(targets)}
        found = [(name, by_stem.get(os.path.splitext(name)[0])) for name in _pictures(photos)]
        pairs = Pairs([(name, target) for name, target in found if target], photos, targets)
        if missing := len(found) - len(pairs):
            print(
                f"{photos.parent}: {missing} photos without a target of the same name are left out"
            )
    else:
        pairs = Pairs(((name, "") for name in _pictures(folder)), folder)
    if not pairs:
        names = ["photo/ + stylized/", "A/ + B/", *([f"faces/ + {style}/"] if style else [])]
        raise DistillError(
            f"{folder}: no pairs found; wanted {', '.join(names[:-1])} or {names[-1]} "
            "with the same file names, or pictures with photo and target side by side"
        )
    if not two:
        _check_side_by_side(pairs, style)
    return pairs


def _two_folders(folder: Path, style: str | None) -> Two | None:
    for left, right in (*_NAMED, *([("faces", style)] if style else [])):
        if (folder / left).is_dir() and (folder / right).is_dir():
            return folder / left, folder / right
    return None


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


def _check_side_by_side(pairs: Pairs, style: str | None) -> None:
    """Photos alone must not pass for pairs: the first readable picture must be wide."""
    for pair in pairs:
        try:
            width, height = read_photo(pair.photo).size
        except BadPhoto:
            continue
        if width < 1.5 * height:
            raise DistillError(
                f"{pair.photo}: {width}×{height} is no side-by-side pair (twice as wide as high); "
                + ("for photos without targets use photos=DIR" if style else _MAKE_SOME)
            )
        return
    raise DistillError(f"{pairs[0].photo.parent}: none of its pictures can be read")
