"""Pictures as NumPy arrays, and PNG files written whole or not at all. Nothing here needs torch."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from PIL import Image

from distill.core.files import write_whole

if TYPE_CHECKING:
    from torch import Tensor

# Measured on 256² photos: 112 KB instead of the 116 of zlib's own search at this level, 4.1 ms
# instead of 4.9 to write, 1.6 instead of 1.8 to read. Level 4 is as small, but slow to write.
PNG = {"compress_level": 1, "compress_type": zlib.Z_RLE}

MODES = {1: "L", 3: "RGB", 4: "RGBA"}  # Pillow's, by the channels of a picture

Batch = TypeVar("Batch", np.ndarray, "Tensor")


def to_array(image: Image.Image) -> np.ndarray:
    """An 8-bit picture, grey, RGB or RGBA, as float32 (C, H, W) in [0, 1], plane by plane."""
    return to_batch([image])[0]


def to_batch(images: Sequence[Image.Image]) -> np.ndarray:
    """Several of one size as float32 (N, C, H, W) in [0, 1]."""
    planes = np.stack([np.asarray(plane) for image in images for plane in image.split()])
    values = np.divide(planes, np.float32(255), dtype=np.float32)
    return values.reshape(len(images), -1, *planes.shape[1:])


def to_picture(values: np.ndarray) -> Image.Image:
    """(C, H, W) in [0, 1], C of MODES, as an 8-bit picture, clamped and rounded to the nearest."""
    levels = np.clip(values, 0, 1) * np.float32(255)
    with np.errstate(invalid="ignore"):  # what is not a number comes out as some level
        planes = np.rint(levels, out=levels).astype(np.uint8)
    # In a third of the time of transposing them.
    return Image.merge(MODES[len(planes)], [Image.fromarray(plane) for plane in planes])


def over_white(picture: Batch) -> Batch:
    """(N, C, H, W), an array or a tensor, as RGB: RGBA is put over white, grey repeated."""
    if picture.shape[1] == 3:
        return picture
    if picture.shape[1] == 1:
        return picture[:, [0, 0, 0]]
    alpha = picture[:, 3:]
    return picture[:, :3] * alpha + (1 - alpha)


def save_png(image: Image.Image, path: Path) -> None:
    """Write a PNG atomically: a killed process leaves no half picture."""
    encoded = io.BytesIO()
    image.save(encoded, format="PNG", **PNG)
    write_whole(path, encoded.getbuffer())
