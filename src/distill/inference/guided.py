"""A small stylised picture enlarged to its photo's full size by the fast guided filter.

He and Sun, "Fast Guided Filter" (2015), after He, Sun and Tang, "Guided Image Filtering" (2013): in
every small window the output is taken for a linear function of the photo's three colours, fitted
at the small size. The functions change slowly, so they can be enlarged where the output cannot;
applied to the full photo they bring its edges along.
"""

from __future__ import annotations

import torch
from kornia.filters import box_blur
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from distill.core.images import to_image, to_tensor

# Of radius 1 to 8 and eps 1e-4 to 1e-2, grey and colour, on 8 photos against the teacher at 1024:
# wider windows gain 0.1 dB and look like a pale photo, smaller ones lose the edges.
RADIUS = 2  # pixels of the small picture; a window is 2·RADIUS + 1 wide
EPS = 1e-3  # variance of the photo below which a window is taken for flat, in [0, 1]²
STRIP = 256  # rows at once: the functions take four to five times the memory of the picture


def upscale(
    photo: Image.Image,
    small: Image.Image,
    stylised: Image.Image,
    radius: int = RADIUS,
    eps: float = EPS,
) -> Image.Image:
    """`stylised`, the output for `small`, at the size of the RGB photo: RGB, or RGBA as it is."""
    windows = fit(to_tensor(small)[None], to_tensor(stylised)[None], radius, eps)
    # Of all windows that a pixel lies in the mean counts.
    functions = _mean(windows.flatten(1, 2), radius).unflatten(1, windows.shape[1:3])
    full = Image.new(stylised.mode, photo.size)
    for top in range(0, photo.height, STRIP):
        bottom = min(top + STRIP, photo.height)
        rows = to_tensor(photo.crop((0, top, photo.width, bottom)))[None]
        part = _enlarged(functions, top, bottom, photo.height, photo.width)
        values = (part[:, :, :3] * rows[:, None]).sum(2) + part[:, :, 3]
        full.paste(to_image(values[0]), (0, top))
    return full


def fit(photo: Tensor, stylised: Tensor, radius: int, eps: float) -> Tensor:
    """(N, 3, H, W) and (N, C, H, W) to one linear function a pixel and channel, (N, C, 4, H, W).

    It is that of the window around the pixel: the first three of four are the weights of red,
    green and blue, the last one is added.
    """
    channels = stylised.shape[1]
    photo_mean, stylised_mean = (_mean(x, radius) for x in (photo, stylised))
    variance = _mean(_products(photo, photo), radius) - _products(photo_mean, photo_mean)
    covariance = _mean(_products(photo, stylised), radius) - _products(photo_mean, stylised_mean)
    left = variance.unflatten(1, (3, 3)).permute(0, 3, 4, 1, 2) + eps * torch.eye(3)
    right = covariance.unflatten(1, (3, channels)).permute(0, 3, 4, 1, 2)
    weights = torch.linalg.solve(left, right).permute(0, 4, 3, 1, 2)
    added = stylised_mean - (weights * photo_mean[:, None]).sum(2)
    return torch.cat([weights, added[:, :, None]], 2)


def _enlarged(functions: Tensor, top: int, bottom: int, height: int, width: int) -> Tensor:
    """Rows top to bottom of the functions enlarged to height×width, bilinear, pixel centres kept.

    The rows are interpolated here, so that strips fit together, the columns by PyTorch.
    """
    own = functions.shape[-2]
    at = ((torch.arange(top, bottom) + 0.5) * own / height - 0.5).clamp(0, own - 1)
    above = at.long()
    below = (above + 1).clamp(max=own - 1)
    share = (at - above)[:, None]
    flat = functions.flatten(1, 2)
    rows = torch.lerp(flat[:, :, above], flat[:, :, below], share)
    wide = F.interpolate(rows, (bottom - top, width), mode="bilinear", align_corners=False)
    return wide.unflatten(1, functions.shape[1:3])


def _products(a: Tensor, b: Tensor) -> Tensor:
    """Every channel of one times every channel of the other, (N, A·B, H, W)."""
    return (a[:, :, None] * b[:, None]).flatten(1, 2)


def _mean(x: Tensor, radius: int) -> Tensor:
    return box_blur(x, 2 * radius + 1, border_type="replicate", separable=True)
