"""What a picture file holds: whole or not, any Pillow mode and colour profile as 8-bit sRGB."""

import io
import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import Image, ImageCms

from distill.core.errors import counted

try:  # optional: phones' HEIC
    import pillow_heif
except ImportError:
    HEIF = set[str]()
else:
    pillow_heif.register_heif_opener()
    HEIF = {".heic", ".heif"}

# Suffixes of pictures in a folder, and of those there that are named where they are left out.
PICTURES = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".avif", ".bmp", ".tif", ".tiff"}
PICTURES |= HEIF
OTHERS = {
    *(".heic", ".heif", ".hif", ".gif", ".apng", ".jxl", ".jp2", ".j2k", ".jpx", ".svg", ".psd"),
    *(".xcf", ".exr", ".hdr", ".tga", ".ico", ".pcx", ".pbm", ".pgm", ".ppm", ".pnm", ".eps"),
    *(".dng", ".raw", ".cr2", ".cr3", ".nef", ".arw", ".orf", ".rw2", ".raf", ".srw", ".pef"),
} - PICTURES
# What Pillow opens and what a camera or a page may have called .jpg. Not EPS and the like, for
# which Pillow starts another program.
KINDS = {"JPEG", "MPO", "PNG", "WEBP", "AVIF", "GIF", "BMP", "TIFF"} | ({"HEIF"} if HEIF else set())

NONE = "no pictures in it (jpg, png, webp, avif, tiff, bmp)"  # of a folder
EMPTY = "not a picture: the file is empty"
SECTOR = 512  # bytes; what a crash or a broken-off download leaves blank is a multiple of it
TOLERANCE = 3  # levels of 255: profiles called sRGB differ by rounding, and pixels stay as they are
# Of TIFF 6.0: BitsPerSample, PhotometricInterpretation, PlanarConfiguration, SampleFormat; values.
_BITS, _PHOTOMETRIC, _PLANES, _FORMAT, _SEPARATE, _SIGNED = 258, 262, 284, 339, 2, 2
_COLOURS, _FILL = 320, 266  # ColorMap, of 16 bits; FillOrder
_SEE_THROUGH = ("RGBA", "LA", "PA", "La", "RGBa")


class BadPhoto(Exception):
    """This file cannot be used as a photo; the message is the reason."""


def left_out(names: Iterable[str]) -> str:
    """How many of these files are pictures of another kind, by suffix; empty where none is."""
    suffixes = (os.path.splitext(name)[1].lower() for name in names)
    kinds = Counter(suffix for suffix in suffixes if suffix in OTHERS).most_common()
    if not kinds:
        return ""
    each = [f"{suffix} ({count})" if len(kinds) > 1 else suffix for suffix, count in kinds]
    total = sum(count for _, count in kinds)
    line = f"{counted(total, 'file')} left out: {', '.join(each)}"
    return line + advice(suffix for suffix, _ in kinds)


def advice(suffixes: Iterable[str]) -> str:
    """What would read one of these, where something would."""
    names = {*suffixes}
    if names & {".tif", ".tiff"}:
        return "; of TIFFs not every kind of pixels is read: save it as RGB of 8 bits"
    return "; pip install pillow-heif reads HEIC" * bool(({".heic", ".heif"} - HEIF) & names)


def check_file(path: Path) -> None:
    """Raises BadPhoto for an empty file and for what must not be opened: a pipe waits for ever."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise BadPhoto("not a file but a folder, pipe, socket or device")
    if not status.st_size:
        raise BadPhoto(EMPTY)


def check_whole(stream: BinaryIO, kind: str | None) -> None:
    """Raises BadPhoto for a kind that is no photo's, and whatever Pillow raises for a lost end.

    A decoder takes a blank end for pixels. PNG's checksums tell, but Pillow's decoder does not read
    them; JPEG and WebP have none, but never end in a sector of zeros, unless a JPEG is padded
    behind its end mark.
    """
    if kind not in KINDS:
        raise BadPhoto(f"not a photo but a file of the kind {kind}")
    stream.seek(0)
    if kind == "PNG":
        with Image.open(stream) as image:
            image.verify()
    elif kind in ("JPEG", "MPO", "WEBP"):
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - SECTOR))
        if not any(stream.read()):
            stream.seek(0)
            if not stream.read().rstrip(b"\0").endswith(b"\xff\xd9"):
                raise BadPhoto("cut short: the end of the file is blank")


def to_rgb(image: Image.Image, alpha: bool = False) -> Image.Image:
    """Any Pillow mode as 8-bit sRGB, transparency over white (kept, as RGBA, with `alpha`).

    An embedded ICC profile is applied, so that a phone's Display P3 keeps its colours; one that is
    damaged or meant for other pixels is left out. Raises BadPhoto for pixels without a known range
    and for TIFFs that Pillow reads wrongly.
    """
    tags: Any = getattr(image, "tag_v2", {})  # of a TIFF
    bits, signed = max(tags.get(_BITS, (16,))), _SIGNED in tags.get(_FORMAT, ())
    _check_pixels(image, tags, bits, signed)
    picture = _in_srgb(image, _eight_bits(image, tags, bits, signed))
    if picture.mode == "RGBA" and not alpha:
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
    plain = picture.convert("RGBA" if alpha else "RGB")
    plain.info = {}  # a profile that is saved with a copy would be applied a second time
    return plain


def _check_pixels(image: Image.Image, tags: Any, bits: int, signed: bool) -> None:
    raw = image.info.get("compression") == "raw"
    if image.mode in ("F", "LAB"):
        raise BadPhoto(f"pixels of the kind {image.mode} are not supported")
    if signed and tags.prefix == b"MM" and not raw:
        raise BadPhoto("a compressed big-endian TIFF of signed numbers is not supported")
    odd = bits != 8 or tags.get(_FILL, 1) != 1 or tags.get(_PHOTOMETRIC) == 0
    if tags.get(_PLANES) == _SEPARATE and (image.mode in _SEE_THROUGH or (raw and odd)):
        raise BadPhoto("a TIFF of planes is supported with 8 bits and without transparency only")
    if max(tags.get(_COLOURS, (2**16 - 1,))) < 2**8:
        raise BadPhoto("a TIFF with a palette of 8 bits, where it has 16, is not supported")


def _eight_bits(image: Image.Image, tags: Any, bits: int, signed: bool) -> Image.Image:
    """As one of the modes L, CMYK, RGB and RGBA."""
    if image.mode.startswith("I") or signed:
        return _grey(image, tags, bits, signed)
    if image.mode in _SEE_THROUGH or "transparency" in image.info:
        # Grey that is multiplied by its alpha Pillow converts to grey with alpha alone.
        return (image.convert("LA") if image.mode == "La" else image).convert("RGBA")
    return image if image.mode in ("L", "CMYK") else image.convert("RGB")


def _in_srgb(image: Image.Image, picture: Image.Image) -> Image.Image:
    """The `picture` that `image` became, with the profile of `image` applied."""
    profile = image.info.get("icc_profile")
    if not profile:
        return picture
    if transform := _transform(profile, picture.mode):
        return transform.apply(picture)
    grey_alpha = picture.mode == "RGBA" and image.mode[0] in "LI"
    if grey_alpha and (transform := _transform(profile, "L")):
        alphas, picture = picture.getchannel("A"), transform.apply(picture.getchannel("R"))
        picture.putalpha(alphas)
    return picture


def _grey(image: Image.Image, tags: Mapping[int, Any], bits: int, signed: bool) -> Image.Image:
    """Grey of other than unsigned 8 bits as those, and RGBA where one level of it is transparent.

    Below 0 of signed numbers is black.
    """
    grey, low = np.asarray(image).astype(np.int64), signed * 2 ** (bits - 1)
    grey = (grey + low) % 2**bits - low  # Pillow has no signed 8 bits and no unsigned 32
    white = 2 ** (bits - signed) - 1
    if bits == 32:  # few use them all: white is that of the fewest bytes
        white = next(2**n - 1 for n in (8, 16, 24, 32 - signed) if grey.max() < 2**n)
    levels = (grey * (255 / white)).round().clip(0, 255).astype(np.uint8)
    picture = Image.fromarray(255 - levels if tags.get(_PHOTOMETRIC) == 0 else levels)
    if isinstance(level := image.info.get("transparency"), int):
        picture = picture.convert("RGBA")
        picture.putalpha(Image.fromarray(np.where(grey == level, 0, 255).astype(np.uint8)))
    return picture


@lru_cache(maxsize=8)
def _transform(profile: bytes, mode: str) -> ImageCms.ImageCmsTransform | None:
    """From an ICC profile to sRGB; None where that changes nothing or cannot be done."""
    out = "RGBA" if mode == "RGBA" else "RGB"
    try:
        srgb = ImageCms.createProfile("sRGB")
        transform = ImageCms.buildTransform(io.BytesIO(profile), srgb, mode, out)
    except ImageCms.PyCMSError:
        return None
    levels = np.linspace(0, 255, 9).round().astype(np.uint8)
    every = np.stack(np.meshgrid(levels, levels, levels), -1).reshape(27, 27, 3)
    probe = Image.fromarray(every).convert(mode)
    plain = np.asarray(probe.convert("RGB"), np.int16)
    changed = np.asarray(transform.apply(probe).convert("RGB"), np.int16)
    return None if np.abs(changed - plain).max() <= TOLERANCE else transform


def is_whole(path: Path) -> bool:
    """Whether a picture file is complete and its checksums hold."""
    try:
        with Image.open(path) as picture:
            picture.verify()
    except Exception:  # Pillow raises whatever a damaged file makes its reader raise
        return False
    return True
