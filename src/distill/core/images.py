"""Pictures, bytes and tensors, and contact sheets; `arrays` has what needs no torch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from distill.core.arrays import over_white, to_picture


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
    return to_picture(picture.detach().float().cpu().numpy())


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


def moved(pictures: Tensor, down: float, right: float) -> Tensor:
    """(N, C, H, W) moved by that many pixels, bilinear between them; its border is continued."""
    for dim, by in ((2, down), (3, right)):
        whole, size = math.floor(by), pictures.shape[dim]
        places = torch.arange(size, device=pictures.device) - whole
        near = pictures.index_select(dim, places.clamp(0, size - 1))
        if part := by - whole:
            far = pictures.index_select(dim, (places - 1).clamp(0, size - 1))
            near = (1 - part) * near + part * far
        pictures = near
    return pictures


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
