"""Paired pictures that already exist: recognise how a folder lays them out.

Below ROOT, or below ROOT/train and ROOT/val (also `valid`, `test`):
  photo/ + stylized/    as distill.prepare writes them
  A/ + B/               the same file names in both
  faces/ + STYLE/       the same file names in both
  pictures only         side by side: photo left, drawing right
Two folders may hold train/ and val/ each, too: A/train + B/train, A/val + B/val.
"""

from __future__ import annotations

import os
from pathlib import Path

from distill.core.errors import DistillError
from distill.data.labelled.split import split
from distill.data.pairs import Pair, Pairs
from distill.data.photos import SUFFIXES, BadPhoto, Photo, Side, read_photo

__all__ = ["Pair", "Pairs", "find_pairs"]

_NAMED = (("photo", "stylized"), ("A", "B"))
_VAL = ("val", "valid", "test")
_MAKE_SOME = "python -m distill.prepare recipe=pix2pix makes pairs of photos and sketches"

Two = tuple[Path, Path]


def find_pairs(root: Path, style: str | None, val_fraction: float, seed: int) -> dict[Side, Pairs]:
    """Both sides of a paired folder; without val/ the split goes by a hash of the names.

    A folder with val/ alone has no training side: it is there to be evaluated on. Without a
    `style` no folder is called by one.

    Raises DistillError when the folder is missing or holds none of the known layouts.
    """
    if not root.is_dir():
        raise DistillError(f"data.root={root}: no such folder")
    two = _two_folders(root, style)
    if two and (inside := _sides_inside(*two)):
        sides = {side: _pairs_of(root, style, each) for side, each in inside.items()}
    else:
        below = _sides_below(root, two)
        sides = {
            side: _pairs_of(each, style, _two_folders(each, style)) for side, each in below.items()
        }
    if "val" not in sides:
        return _split(sides["train"], val_fraction, seed)
    return {"train": sides.get("train", Pairs([], root)), "val": sides["val"]}


def _sides_inside(left: Path, right: Path) -> dict[Side, Two]:
    """The folders of each side where both `left` and `right` are divided and hold no pictures."""
    named = {name: (left / name, right / name) for name in ("train", *_VAL)}
    there = {name: two for name, two in named.items() if two[0].is_dir() and two[1].is_dir()}
    if not there or _pictures(left):
        return {}
    held_out = next((two for name, two in there.items() if name in _VAL), None)
    sides: dict[Side, Two] = {"train": there["train"]} if "train" in there else {}
    return sides | {"val": held_out} if held_out else sides


def _sides_below(root: Path, two: Two | None) -> dict[Side, Path]:
    """ROOT/train and ROOT/val as far as they are there, otherwise all of ROOT to train on."""
    train = root / "train"
    sides: dict[Side, Path] = {"train": train} if train.is_dir() else {}
    val = next((root / name for name in _VAL if (root / name).is_dir()), None)
    if val is None or (two and not sides):
        return sides or {"train": root}
    return sides | {"val": val}


def _pairs_of(folder: Path, style: str | None, two: Two | None) -> Pairs:
    """The pairs of `two` folders, or those that stand side by side in the pictures of `folder`."""
    pairs = _matched(*two) if two else Pairs(((name, "") for name in _pictures(folder)), folder)
    if not pairs:
        names = ["photo/ + stylized/", "A/ + B/", *([f"faces/ + {style}/"] if style else [])]
        raise DistillError(
            f"{folder}: no pairs found; wanted {', '.join(names[:-1])} or {names[-1]} "
            "with the same file names, or pictures with photo and drawing side by side"
        )
    if not two:
        _check_side_by_side(pairs, style)
    return pairs


def _two_folders(folder: Path, style: str | None) -> Two | None:
    for left, right in (*_NAMED, *([("faces", style)] if style else [])):
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
                + ("for photos without drawings use photos=DIR" if style else _MAKE_SOME)
            )
        return
    raise DistillError(f"{pairs[0].photo.parent}: none of its pictures can be read")
