"""Paired pictures that already exist: recognise how a folder lays them out.

Below ROOT, or below ROOT/train and ROOT/val (also `valid`, `test`):
  photo/ + stylized/    as distill.prepare writes them
  A/ + B/               the same file names in both
  faces/ + STYLE/       the same file names in both
  pictures only         side by side: photo left, drawing right
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from distill.data.photos import SUFFIXES, BadPhoto, Photo, Side, read_photo, split
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


def find_pairs(root: Path, style: str, val_fraction: float, seed: int) -> dict[Side, list[Pair]]:
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
        "train": _pairs_in(train, style) if train.is_dir() else [],
        "val": _pairs_in(val, style),
    }


def _pairs_in(folder: Path, style: str) -> list[Pair]:
    two = _two_folders(folder, style)
    pairs = _matched(*two) if two else [Pair(path, None) for path in _pictures(folder)]
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


def _matched(photos: Path, targets: Path) -> list[Pair]:
    by_stem = {path.stem: path for path in _pictures(targets)}
    pairs = [Pair(p, by_stem[p.stem]) for p in _pictures(photos) if p.stem in by_stem]
    missing = len(_pictures(photos)) - len(pairs)
    if missing:
        print(f"{photos.parent}: {missing} photos without a drawing of the same name are left out")
    return pairs


def _pictures(folder: Path) -> list[Path]:
    visible = (p for p in folder.iterdir() if not p.name.startswith("."))  # not macOS's ._NAME
    return sorted(p for p in visible if p.suffix.lower() in SUFFIXES and p.is_file())


def _split(pairs: list[Pair], val_fraction: float, seed: int) -> dict[Side, list[Pair]]:
    by_photo = {Photo(pair.photo, pair.name): pair for pair in pairs}
    sides = split(by_photo, val_fraction, seed)
    return {side: [by_photo[p] for p in photos] for side, photos in sides.items()}


def _check_side_by_side(pairs: list[Pair]) -> None:
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
