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
    paths = (Path(top) / name for top, _, names in os.walk(folder) for name in names)
    found = sorted(p for p in paths if p.suffix.lower() in SUFFIXES and not p.name.startswith("."))
    if not found:
        raise DistillError(f"{key}{folder}: no jpg, jpeg, png or webp in it; {_WHAT_TO_DO}")
    return [Photo(path, path.relative_to(folder).as_posix()) for path in found]


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
    digest = hashlib.sha256(f"{seed}:{group_of(photo.key)}".encode(errors="surrogateescape"))
    return "val" if int.from_bytes(digest.digest()[:8], "big") < val_fraction * 2**64 else "train"


def split(photos: Iterable[Photo], val_fraction: float, seed: int) -> dict[Side, list[Photo]]:
    """Both sides, in the order given; DistillError when one of them is empty."""
    sides: dict[Side, list[Photo]] = {"train": [], "val": []}
    for photo in photos:
        sides[side_of(photo, val_fraction, seed)].append(photo)
    count = sum(len(side) for side in sides.values())
    for name, side in sides.items():
        if not side:
            raise DistillError(
                f"none of {count} photos falls on the {name} side of the split; add photos or "
                f"change data.val_fraction={val_fraction}"
            )
    return sides


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
