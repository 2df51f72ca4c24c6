"""Pictures, bytes and tensors, their filters, and contact sheets; `arrays` needs no torch."""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor
from torch.nn import functional as F

from distill.core.arrays import MODES, over_white, to_picture

# Red, green and blue of ImageNet's photos in [0, 1], as networks trained on them want them scaled.
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
REC_601 = (0.299, 0.587, 0.114)  # luma of red, green and blue, ITU-R BT.601
SLACK = 1e-3  # arithmetic may leave [0, 1] by so much, and is then clamped


def to_uint8(values: Tensor) -> Tensor:
    """[0, 1] to 8 bits, clamped and rounded to the nearest: what a PNG of it would hold."""
    return values.clamp(0, 1).mul(255).round().byte()


def to_float(values: Tensor) -> Tensor:
    """uint8 to float32 in [0, 1]."""
    return values.float().div_(255)


def to_pixels(image: Image.Image) -> Tensor:
    """An 8-bit picture as it lies in memory, uint8 (H, W, C)."""
    return torch.from_numpy(np.array(image)).reshape(image.height, image.width, -1)


def from_pixels(values: Tensor) -> Tensor:
    """uint8 (…, H, W, C) as float32 (…, C, H, W) in [0, 1], its channels last in memory."""
    return to_float(values.movedim(-1, -3))


def to_tensor(image: Image.Image) -> Tensor:
    """An 8-bit picture as float32 (C, H, W) in [0, 1]."""
    return from_pixels(to_pixels(image))


def to_image(picture: Tensor) -> Image.Image:
    """(C, H, W) in [0, 1], C = 1, 3 or 4, as an 8-bit picture, rounded to the nearest."""
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


def channels_in(output: object) -> int:
    """Of a network's output (N, C, H, W); 3 where it is no picture, which is then to be said."""
    shape = output.shape if isinstance(output, Tensor) else ()
    return shape[1] if len(shape) == 4 and shape[1] in MODES else 3


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


SIDE = 5  # pixels; lines of up to 4 pixels across are seen in full
ACROSS = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]]) / 8
SOBEL = torch.stack([ACROSS, ACROSS.T])[:, None]  # d/dx, d/dy


def luma(pictures: Tensor) -> Tensor:
    """Brightness (N, 1, H, W) in [0, 1] of RGB (N, 3, H, W) in [0, 1], by Rec. 601."""
    weights = torch.tensor(REC_601, device=pictures.device, dtype=pictures.dtype)
    return (pictures * weights.view(3, 1, 1)).sum(1, keepdim=True)


def sobel(pictures: Tensor) -> Tensor:
    """Slopes per pixel (N, 2·C, H, W) of (N, C, H, W): of each channel across, then down.

    By Sobel's kernels over 8; the border's pixels are repeated.
    """
    channels = pictures.shape[1]
    padded = F.pad(pictures, (1, 1, 1, 1), mode="replicate")
    return F.conv2d(padded, SOBEL.to(padded).repeat(channels, 1, 1, 1), groups=channels)


def moved(pictures: Tensor, down: float, right: float) -> Tensor:
    """(N, C, H, W) moved by that many pixels, bilinear between them; its border is continued."""
    for dim, by in ((2, down), (3, right)):
        size, whole = pictures.shape[dim], math.floor(by)
        places = torch.arange(size, device=pictures.device) - whole
        near = pictures.index_select(dim, places.clamp(0, size - 1))
        if part := by - whole:
            far = pictures.index_select(dim, (places - 1).clamp(0, size - 1))
            near = (1 - part) * near + part * far
        pictures = near
    return pictures


def black_hat(grey: Tensor, side: int = SIDE) -> Tensor:
    """How much darker each pixel of (N, 1, H, W) is than its surroundings, ≥ 0 and differentiable.

    The grey closing by a flat square of an odd `side`, minus the picture (Serra 1982; OpenCV's
    MORPH_BLACKHAT): a line thinner than the square has its depth, an edge between two areas and
    whatever is wider than the square have 0. Squares end at the picture's border.
    """
    return -highest(-highest(grey, side), side) - grey


def highest(values: Tensor, side: int) -> Tensor:
    """The largest of the square of an odd `side` around each pixel of (N, C, H, W).

    Row by row and then column by column: for side 5 a tenth of the time of `max_pool2d` on a CPU
    (0.8 against 7.7 ms for both steps of a closing of 256², one thread), though its gradient costs
    four times as much.
    """
    half = side // 2
    spread = F.pad(values, (half, half, half, half), value=float("-inf"))
    for dim in (2, 3):
        size = values.shape[dim]
        parts = [spread.narrow(dim, start, size) for start in range(side)]
        spread = reduce(torch.maximum, parts)
    return spread
