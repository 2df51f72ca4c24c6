"""Pictures, bytes and tensors, and contact sheets; `arrays` has what needs no torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from distill.core.arrays import over_white, to_picture

SLACK = 1e-3  # arithmetic may leave [0, 1] by so much, and is then clamped


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


def wrong_pictures(output: object, shape: Sequence[int]) -> str:
    """What keeps the user's output from being float32 pictures in [0, 1]; empty where nothing."""
    if not isinstance(output, Tensor):
        name = f"{type(output).__module__}.{type(output).__qualname__}"
        return f"gave a {name.removeprefix('builtins.')}, want a torch.Tensor"
    if output.shape != tuple(shape) or output.dtype != torch.float32:
        return f"gave {form(output)}, want {tuple(shape)} float32"
    if not output.isfinite().all():
        return "gave values that are not finite (NaN or infinite)"
    low, high = output.aminmax()
    if low < -SLACK or high > 1 + SLACK:
        return f"gave values from {low.item():.4g} to {high.item():.4g}, want [0, 1]"
    return ""


def form(tensor: Tensor) -> str:
    """A tensor's shape and kind, for messages."""
    return f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"


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
