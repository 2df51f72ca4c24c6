"""Photos in: find them, read any of them as upright RGB, and say why one cannot be used."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from distill.errors import DistillError

Side = Literal["train", "val"]

SUFFIXES = {".jpg", ".jpeg", ".png", ".webp"}
MIN_SIDE = 64  # pixels; a smaller picture holds nothing to learn a style from
MAX_PIXELS = 89_478_485  # Pillow's own bound, 256 MiB as RGB; above it a file is taken for a bomb

# What cameras and exporters put before a running number: no name of a person or a scene, so the
# rest of the name is no group. Without this, IMG_0001 … IMG_9999 would all be one group.
_CAMERA = re.compile(
    r"(?i)^(img|_?mg|dsc[fn]?|_dsc|p|pxl|gopr|image|photo|picture|pic|frame|screenshot)?$"
)
_NUMBER = re.compile(r"(_\d{4}|-\d+)$")


class BadPhoto(Exception):
    """This file cannot be used as a photo; the message is the reason."""


@dataclass(frozen=True)
class Photo:
    """A photo file, its stable name within its source and, where it is fixed, its side."""

    path: Path
    key: str
    side: Side | None = None

    @property
    def pair_name(self) -> str:
        """File name of its pair: the readable stem and 8 digits that make it unique."""
        stem = re.sub(r"[^\w.-]+", "_", Path(self.key).stem)
        stem = stem.encode()[:80].decode(errors="ignore")  # file systems count bytes, up to 255
        return f"{stem}-{hashlib.sha256(self.key.encode(errors='surrogateescape')).hexdigest()[:8]}"


def find_photos(folder: Path, key: str = "photos=") -> list[Photo]:
    """Every picture file below a folder, sorted by name; links to folders are not followed.

    Raises DistillError for a folder that is missing or holds no jpg, jpeg, png or webp.
    """
    if not folder.is_dir():
        raise DistillError(f"{key}{folder}: no such folder; {_WHAT_TO_DO}")
    found = sorted(p for p in _walk(folder) if p.suffix.lower() in SUFFIXES)
    if not found:
        raise DistillError(f"{key}{folder}: no jpg, jpeg, png or webp in it; {_WHAT_TO_DO}")
    return [Photo(path, path.relative_to(folder).as_posix()) for path in found]


def _walk(folder: Path) -> Iterable[Path]:
    """Files below a folder, but for what is hidden and for sets and runs that we wrote there."""
    for top, folders, names in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".")
            and not (Path(top) / name / "dataset.json").exists()
            and not (Path(top) / name / "config.yaml").exists()
        ]
        yield from (Path(top) / name for name in names if not name.startswith("."))


_WHAT_TO_DO = "put photos there, name another folder with photos=DIR, or try data=demo"


def group_of(key: str) -> str:
    """What must stay on one side of the split: the name without a trailing _NNNN or -N number."""
    stem = Path(key).stem
    group = _NUMBER.sub("", stem)
    return stem if _CAMERA.match(group) else group


def side_of(photo: Photo, val_fraction: float, seed: int) -> Side:
    """train or val by a hash of the photo's group: stable however many photos are added."""
    if photo.side is not None:
        return photo.side
    return "val" if _hash(group_of(photo.key), seed) < val_fraction * 2**64 else "train"


def split(photos: Iterable[Photo], val_fraction: float, seed: int) -> dict[Side, list[Photo]]:
    """Both sides, in the order given, neither of them empty unless the photos say so themselves.

    A few photos may all fall on one side; then the groups with the lowest hashes (single photos,
    where all are one group) are held out instead. Raises DistillError for a single photo.
    """
    photos = list(photos)
    sides: dict[Side, list[Photo]] = {"train": [], "val": []}
    for photo in photos:
        sides[side_of(photo, val_fraction, seed)].append(photo)
    if all(sides.values()) or all(photo.side for photo in photos):
        return sides
    return _split_few(photos, val_fraction, seed)


def _split_few(photos: list[Photo], val_fraction: float, seed: int) -> dict[Side, list[Photo]]:
    if len(photos) < 2:
        raise DistillError("one photo alone cannot be split into training and validation; add more")
    groups = {photo: group_of(photo.key) for photo in photos}
    if len(set(groups.values())) == 1:
        print(f"all {len(photos)} photos share one name, so they are split one by one")
        groups = {photo: photo.key for photo in photos}
    ordered = sorted(set(groups.values()), key=lambda group: _hash(group, seed))
    count = min(max(1, round(val_fraction * len(ordered))), len(ordered) - 1)
    held_out = set(ordered[:count])
    return {
        "train": [photo for photo in photos if groups[photo] not in held_out],
        "val": [photo for photo in photos if groups[photo] in held_out],
    }


def _hash(group: str, seed: int) -> int:
    digest = hashlib.sha256(f"{seed}:{group}".encode(errors="surrogateescape"))
    return int.from_bytes(digest.digest()[:8], "big")


def read_photo(path: Path, least: int = MIN_SIDE, alpha: bool = False) -> Image.Image:
    """A picture file as upright 8-bit RGB with at least `least` pixels a side.

    EXIF rotation is applied, transparency is put over white (kept, as RGBA, with `alpha`), 16-bit
    greys are scaled to 8 bits. Raises BadPhoto with the reason for whatever cannot be read.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as image:
                _check_size(image.size, least)
                upright = ImageOps.exif_transpose(image)
                return upright.convert("RGBA") if alpha else to_rgb(upright)
    except BadPhoto:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise BadPhoto(f"larger than {MAX_PIXELS} pixels") from None
    except UnidentifiedImageError:
        raise BadPhoto("not a picture, or of an unknown kind") from None
    except Exception as error:  # decoders raise whatever a damaged file makes them raise
        raise BadPhoto(f"unreadable or cut short ({_one_line(error)})") from None


def to_rgb(image: Image.Image) -> Image.Image:
    """Any Pillow mode as 8-bit RGB, transparency over white."""
    if image.mode.startswith("I"):
        grey = np.asarray(image).astype(np.float64)
        return Image.fromarray((grey / 257).round().clip(0, 255).astype(np.uint8)).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        rgba = image.convert("RGBA")
        white = Image.new("RGBA", rgba.size, "white")
        return Image.alpha_composite(white, rgba).convert("RGB")
    return image.convert("RGB")


def centre_square(image: Image.Image, size: int, crop: float = 1.0) -> Image.Image:
    """The centre square, `crop` times the short side wide, at size×size (Lanczos, antialiased)."""
    side = max(1, round(min(image.size) * crop))
    left, top = (image.width - side) / 2, (image.height - side) / 2
    box = (left, top, left + side, top + side)
    return image.resize((size, size), Image.Resampling.LANCZOS, box=box)


def _check_size(size: tuple[int, int], least: int) -> None:
    if min(size) < least:
        raise BadPhoto(f"{size[0]}×{size[1]} pixels: smaller than {least} a side")
    if size[0] * size[1] > MAX_PIXELS:
        raise BadPhoto(f"larger than {MAX_PIXELS} pixels")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__
