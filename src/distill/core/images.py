"""Pictures, bytes and tensors; PNG files and contact sheets, written whole or not at all."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from distill.core.files import write_whole

# Measured on 256² photos: 112 KB instead of the 116 of zlib's own search at this level, 4.1 ms
# instead of 4.9 to write, 1.6 instead of 1.8 to read. Level 4 is as small, but slow to write.
PNG = {"compress_level": 1, "compress_type": zlib.Z_RLE}


def to_uint8(values: Tensor) -> Tensor:
    """[0, 1] to 8 bits, clamped and rounded to the nearest: what a PNG of it would hold."""
    return values.clamp(0, 1).mul(255).round().byte()


def to_float(values: Tensor) -> Tensor:
    """uint8 to float32 in [0, 1]."""
    return values.float().div_(255)


def to_pixels(image: Image.Image) -> Tensor:
    """An 8-bit picture as it lies in memory, uint8 (H, W, C)."""
    return torch.from_numpy(np.array(image))


def from_pixels(values: Tensor) -> Tensor:
    """uint8 (…, H, W, C) as float32 (…, C, H, W) in [0, 1], its channels last in memory."""
    return to_float(values.movedim(-1, -3))


def to_tensor(image: Image.Image) -> Tensor:
    """An 8-bit picture as float32 (C, H, W) in [0, 1]."""
    return from_pixels(to_pixels(image))


def to_image(picture: Tensor) -> Image.Image:
    """(C, H, W) in [0, 1], C = 3 or 4, as an 8-bit picture, rounded to the nearest."""
    array = to_uint8(picture.detach()).permute(1, 2, 0).cpu().numpy()
    return Image.fromarray(np.ascontiguousarray(array))


def over_white(picture: Tensor) -> Tensor:
    """RGBA (N, 4, H, W) put over white as RGB; RGB passes unchanged."""
    if picture.shape[1] == 3:
        return picture
    alpha = picture[:, 3:]
    return picture[:, :3] * alpha + (1 - alpha)


def batches(pictures: Iterable[Tensor], size: int) -> Iterator[Tensor]:
    """Batches of equally large uint8 pictures as float32 in [0, 1], in order.

    A change of size starts a new batch.
    """
    group: list[Tensor] = []
    for picture in pictures:
        if group and (len(group) == size or group[0].shape != picture.shape):
            yield torch.stack(group)
            group = []
        group.append(to_float(picture))
    if group:
        yield torch.stack(group)


def save_png(image: Image.Image, path: Path) -> None:
    """Write a PNG atomically: a killed process leaves no half picture."""
    encoded = io.BytesIO()
    image.save(encoded, format="PNG", **PNG)
    write_whole(path, encoded.getbuffer())


def sheet(rows: Sequence[Sequence[Tensor]], titles: Sequence[str]) -> Image.Image:
    """A contact sheet: rows of equally large (C, H, W) pictures under a line of titles."""
    gap = 4
    height, width = rows[0][0].shape[-2:]
    band = max(18, height // 12)
    size = (len(titles) * (width + gap) + gap, band + len(rows) * (height + gap) + gap)
    page = Image.new("RGB", size, "white")
    font = ImageFont.load_default(size=band * 0.62)
    draw = ImageDraw.Draw(page)
    for column, title in enumerate(titles):
        centre = gap + column * (width + gap) + width / 2
        draw.text((centre, band / 2), title, fill="black", font=font, anchor="mm")
    for row, pictures in enumerate(rows):
        for column, picture in enumerate(pictures):
            spot = (gap + column * (width + gap), band + row * (height + gap))
            page.paste(to_image(over_white(picture[None])[0]), spot)
    return page
