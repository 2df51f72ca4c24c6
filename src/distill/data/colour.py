"""What a picture's numbers mean: any Pillow mode and colour profile as 8-bit sRGB."""

from __future__ import annotations

import io
from functools import lru_cache

import numpy as np
from PIL import Image, ImageCms

# Levels of 255. Profiles called sRGB differ by their rounding: their pixels stay as they are.
TOLERANCE = 3

_SEE_THROUGH = ("RGBA", "LA", "PA", "La", "RGBa")


def to_rgb(image: Image.Image, alpha: bool = False) -> Image.Image:
    """Any Pillow mode as 8-bit sRGB, transparency over white (kept, as RGBA, with `alpha`).

    An embedded ICC profile is applied, so that a phone's Display P3 keeps its colours; one that is
    damaged or meant for other pixels is left out. Raises ValueError for pixels without a known
    range.
    """
    profile = image.info.get("icc_profile")
    picture = _eight_bits(image)
    if profile:
        picture = _by_profile(picture, profile)
    if picture.mode == "RGBA" and not alpha:
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
    plain = picture.convert("RGBA" if alpha else "RGB")
    plain.info = {}  # a profile that is saved with a copy would be applied a second time
    return plain


def _eight_bits(image: Image.Image) -> Image.Image:
    """As RGBA where anything is see-through, else as L, CMYK or RGB; 16 bits scaled to 8."""
    if image.mode in ("F", "LAB"):
        raise ValueError(f"pixels of the kind {image.mode} are not supported")
    if image.mode.startswith("I"):
        grey = np.asarray(image).astype(np.float64)
        return Image.fromarray((grey / 257).round().clip(0, 255).astype(np.uint8))
    if image.mode in _SEE_THROUGH or "transparency" in image.info:
        return image.convert("RGBA")
    return image if image.mode in ("L", "CMYK") else image.convert("RGB")


def _by_profile(picture: Image.Image, profile: bytes) -> Image.Image:
    transform = _transform(profile, picture.mode)
    return picture if transform is None else transform.apply(picture)


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
