"""Pairs of pictures on disk: how a folder lays them out, and many of them in little memory.

Below ROOT, or below ROOT/train, ROOT/val (also `valid`) and ROOT/test:
  photo/ + stylized/    as distill.prepare writes them
  A/ + B/               the same file names in both
  faces/ + STYLE/       the same file names in both
  pictures only         side by side: photo left, target right
Two folders may hold train/, val/ and test/ each, too: A/train + B/train, A/val + B/val.
ROOT/dropped.txt lists pairs to leave out, one a line: a photo's path below ROOT, or its name;
ROOT/unpaired.txt what was found without a partner.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, overload

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from distill.core.errors import DistillError, counted
from distill.core.files import near_name
from distill.data.decode import PICTURES, left_out, to_rgb
from distill.data.dropped import copies
from distill.data.manifest import manifest_at, set_facts
from distill.data.partners import check_shapes, match, tell_alone
from distill.data.photo_table import (
    DROPPED,
    LAYER_FOLDER,
    SIDES,
    read_dropped,
    read_sides,
    size_of,
    write_sides,
)
from distill.data.photos import BadPhoto, Photo, Side, read_photo
from distill.data.split import grown_sides

SAMPLED = 16  # targets that are looked at for transparency
OPAQUE = 255
_NAMED = (("photo", "stylized"), ("A", "B"))
_MAKE_SOME = "python -m distill.prepare --help says how to make pairs of photos"

FolderPair = tuple[Path, Path]
# Of a side its folder and, in it, two of pictures.
Layout = dict[Side, tuple[Path, FolderPair | None]]
# Folders of sides; val/ comes before valid/.
_SIDES_NAMED: dict[str, Side] = {"train": "train", "valid": "val", "val": "val", "test": "test"}


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
        photo, target = self._read_both(alpha and swap, alpha and not swap)
        return (target, photo) if swap else (photo, target)

    def pixels(self, swap: bool = False) -> None:
        """A file's decoder gives pictures."""

    def read_transparent(self) -> tuple[Image.Image, Image.Image]:
        """Photo and target as RGBA. Raises BadPhoto."""
        return self._read_both(True, True)

    def lines(self, height: int, width: int) -> Tensor:
        """The teacher's layer of lines, uint8 (height, width). Raises BadPhoto for another size."""
        assert self.target is not None
        layer = read_photo(self.target.parents[1] / LAYER_FOLDER / self.target.name).convert("L")
        if layer.size != (width, height):
            size = f"{layer.width}×{layer.height} pixels"
            raise BadPhoto(f"its layer {LAYER_FOLDER}/{self.target.name}: {size}, not as the photo")
        return torch.from_numpy(np.array(layer))

    def _read_both(self, *alpha: bool) -> tuple[Image.Image, Image.Image]:
        if self.target is None:
            both = read_photo(self.photo, alpha=any(alpha))
            half = both.width // 2  # an odd column in the middle belongs to neither
            left, right = (both.crop((x, 0, x + half, both.height)) for x in (0, both.width - half))
            return to_rgb(left, alpha[0]), to_rgb(right, alpha[1])
        photo, name = read_photo(self.photo, alpha=alpha[0]), f"its target {str(self.target)!r}"
        try:
            target = read_photo(self.target, alpha=alpha[1])
        except BadPhoto as reason:
            raise BadPhoto(f"{name}: {reason}") from None
        check_shapes(photo.size, target.size, name)
        return photo, target


def read_in(pair: ReadablePair, channels: int, swap: bool = False) -> tuple[Image.Image, ...]:
    """Photo and target, or with `swap` target and photo; the second is grey where it has 1 of
    `channels`, RGBA where 4. Raises BadPhoto."""
    first, second = pair.read(channels == 4, swap)
    return first, second.convert("L") if channels == 1 else second


class Pairs(Sequence[Pair]):
    """Pairs of one folder, or of two with `targets`, made when they are asked for.

    The names lie in one block of bytes: as objects, those of 200,000 pairs took 200 MB in every
    process that loads pictures.
    """

    def __init__(
        self, names: Iterable[tuple[str, str]], photos: Path, targets: Path | None = None
    ) -> None:
        # No file name holds a slash, so it can part the photo's name from the target's.
        self._rows = np.array([os.fsencode("/".join(both)) for both in names], np.bytes_)
        self.photos, self.targets = photos, targets

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Pair: ...

    @overload
    def __getitem__(self, index: slice) -> Pairs: ...

    def __getitem__(self, index: int | slice) -> Pair | Pairs:
        if isinstance(index, slice):
            return self.take(range(len(self))[index])
        photo, _, target = os.fsdecode(self._rows[index]).partition("/")
        return Pair(self.photos / photo, self.targets / target if self.targets else None)

    def take(self, indices: Iterable[int]) -> Pairs:
        """The pairs with these indices, in this order."""
        selection = copy(self)
        selection._rows = self._rows[np.fromiter(indices, int)]
        return selection


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
    remember: bool = False,
) -> dict[Side, Pairs]:
    """All sides of a paired folder; without val/ and test/ the split goes by a hash of the names.

    The test side is empty where val/ or test/ is the only one beside train/, which validation then
    has, and where the hash splits without a `test_fraction`. A folder without train/ has no
    training side: it is there to be evaluated on. Without a `style` no folder is called by one.
    What ROOT/dropped.txt names is left out, unless `with_dropped`; the others keep their sides. Of
    a set of several sizes it gives the squares, where it has any, and with `whole` every pair.
    What the hash has split stays where it was when pairs are added, once a training has them
    `remember`ed: in ROOT/split-VAL-TEST-SEED.tsv.

    Raises DistillError when the folder is missing or holds none of the known layouts.
    """
    if not root.is_dir():
        raise DistillError(f"data.root={root}: no such folder{near_name(root)}")
    if (kind := set_facts(root).get("kind", "pairs")) != "pairs":
        raise DistillError(f"data.root={root}: holds {kind}; add data={kind}, or unpack them")
    layout, alone = _layout(root, style), list[str]()
    sides = {side: _pairs_of(folder, style, two, alone) for side, (folder, two) in layout.items()}
    below_root = [Path(path).relative_to(root).as_posix() for path in alone]
    tell_alone(root, below_root, "without a partner of the same name")
    if by_names := sides.keys() == {"train"}:
        sides = _split_by_names(root, sides["train"], (val_fraction, seed, test_fraction), remember)
    sides = {side: sides.get(side, Pairs([], root)) for side in SIDES}
    sides = sides if with_dropped else _without_dropped(root, sides)
    if not sides["val"] and (val_fraction or not by_names):
        sides["val"] = sides["test"]
        if sides["train"]:  # validation chooses by them, so they are no test
            sides["test"] = Pairs([], root)
    if whole or not (manifest_at(root) or {}).get("sizes"):
        return sides
    squares = {side: squares_of(pairs) for side, pairs in sides.items()}
    return squares if any(map(len, squares.values())) else sides


def squares_of(pairs: Pairs) -> Pairs:
    """Those of a set of several sizes that are no whole pictures."""
    return pairs.take(i for i, pair in enumerate(pairs) if size_of(pair.name) is None)


def whole_of(pairs: Pairs, sizes: Sequence[int]) -> Pairs:
    """Those of a set of several sizes that are whole pictures of these sizes, the small first."""
    sizes_of = [(size_of(pair.name), i) for i, pair in enumerate(pairs)]
    return pairs.take(i for size, i in sorted((s, i) for s, i in sizes_of if s in sizes))


def _layout(root: Path, style: str | None) -> Layout:
    """How a folder lays out its pairs; without folders of sides all are of the training side."""
    two = _two_folders(root, style)
    if two:  # A/train + B/train: the sides are folders of both
        photos, targets = two
        inside: Layout = {
            side: (root, (photos / name, targets / name))
            for name, side in _SIDES_NAMED.items()
            if _holds_files(photos / name) and _holds_files(targets / name)
        }
        if inside and not _pictures(photos):
            return inside
    # train/A + train/B, or pictures side by side in train/: each side is a folder.
    below = {side: root / name for name, side in _SIDES_NAMED.items() if _holds_files(root / name)}
    if not below or (two and "train" not in below):
        return {"train": (root, two)}
    return {side: (folder, _two_folders(folder, style)) for side, folder in below.items()}


def _holds_files(folder: Path) -> bool:
    """Whether there is a file in or below it: val/ and test/ may be emptied by drop=FILE."""
    return any(files for _, _, files in os.walk(folder))


def _split_by_names(
    root: Path, pairs: Pairs, split: tuple[float, int, float], remember: bool
) -> dict[Side, Pairs]:
    """The sides of pairs that no folder divides, by a hash of their names; `split` is the share of
    validation, the seed and the share of the test.

    Those that a training had before keep theirs; with `remember` this one's are written down.
    """
    val_fraction, seed, test_fraction = split
    file = root / f"split-{val_fraction:g}-{test_fraction:g}-{seed}.tsv"
    known = dict(read_sides(file))
    photos = [Photo(pair.photo, pair.name) for pair in pairs]
    sides = grown_sides(photos, known, val_fraction, seed, test_fraction)
    if remember and (new := [photo.key for photo in photos if photo.key not in known]):
        side_of = dict(zip((photo.key for photo in photos), sides, strict=True))
        if known:
            counts = Counter(side_of[key] for key in new)
            text = ", ".join(f"{counts[side]} {side}" for side in SIDES if counts[side])
            print(f"{root}: {counted(len(new), 'new pair')}: {text}; the others keep their sides")
        with suppress(OSError):  # then they keep them as long as none is added
            write_sides(file, (known | side_of).items())
    return {side: pairs.take(i for i, each in enumerate(sides) if each == side) for side in SIDES}


def _without_dropped(root: Path, sides: dict[Side, Pairs]) -> dict[Side, Pairs]:
    """The sides without what the set's own list names. Raises DistillError where none is left."""
    lines = read_dropped(root / DROPPED)
    if not lines:
        return sides
    names = {*lines}
    if manifest_at(root) is None:  # pairs of one's own: a copy under another name stays out, too
        every = (Photo(pair.photo, pair.name) for pairs in sides.values() for pair in pairs)
        names |= {photo.local.relative_to(root).as_posix() for photo in copies(every, lines)}
    kept = {
        side: pairs.take(
            index
            for index, pair in enumerate(pairs)
            if pair.name not in names and pair.photo.relative_to(root).as_posix() not in names
        )
        for side, pairs in sides.items()
    }
    before, after = (sum(map(len, each.values())) for each in (sides, kept))
    parts: dict[str, Sequence[Side]] = {"training pair": ["train"], "held-out pair": SIDES[1:]}
    for which, group in (parts if after else {"pair": SIDES}).items():
        if any(sides[side] for side in group) and not any(kept[side] for side in group):
            raise DistillError(
                f"{root / DROPPED}: names every {which} there is; take lines out of it"
            )
    if before - after:
        print(f"{root}: {counted(before - after, 'pair')} left out by its {DROPPED}")
    return kept


def _pairs_of(folder: Path, style: str | None, two: FolderPair | None, alone: list[str]) -> Pairs:
    """The pairs of `two` folders, or those that stand side by side in the pictures of `folder`."""
    if two:
        photos, targets = two
        names, others = (_pictures(each, verbose=True) for each in two)
        matched, *rest = match(names, others, f"{targets}: ")
        pairs = Pairs(matched, photos, targets)
        alone += [os.path.join(d, name) for d, left in zip(two, rest, strict=True) for name in left]
    else:
        pairs = Pairs(((name, "") for name in _pictures(folder, verbose=True)), folder)
    if not pairs:
        names = ["photo/ + stylized/", "A/ + B/", *([f"faces/ + {style}/"] if style else [])]
        if style == "faces":
            names[-1] = "faces/ + NAME/ by style.name=NAME"
        raise DistillError(
            f"{folder}: no pairs found; wanted {', '.join(names[:-1])} or {names[-1]} "
            "with the same file names (folders in them are not read), or pictures with photo and "
            "target side by side"
        )
    if not two:
        _check_side_by_side(pairs, style)
    return pairs


def _two_folders(folder: Path, style: str | None) -> FolderPair | None:
    for left, right in (*_NAMED, *([("faces", style)] if style else [])):
        both = (folder / left).is_dir() and (folder / right).is_dir()
        if both and not (folder / left).samefile(folder / right):
            return folder / left, folder / right
    return None


def _pictures(folder: Path, verbose: bool = False) -> list[str]:
    """Names of picture files, in order; `verbose` prints how many of other kinds there are."""
    # scandir asks the disk nothing more about a plain file.
    with os.scandir(folder) as entries:  # not macOS's ._NAME
        there = [entry for entry in entries if not entry.name.startswith(".")]
        if verbose and (others := left_out(entry.name for entry in there)):
            print(f"{folder}: {others}")
        return sorted(
            entry.name
            for entry in there
            if os.path.splitext(entry.name)[1].lower() in PICTURES and entry.is_file()
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
