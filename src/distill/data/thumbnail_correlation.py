"""Thumbnails compared: their correlation, straight, mirrored, or as discs rotated about the centre.

What makes two pictures near-duplicates, and how that was measured, is in `duplicates`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from distill.data.thumbnails import Thumbnails

ALIKE = 0.95  # correlation above which two photos are near-duplicates
ALIKE_TURNED = 0.96  # the same of discs, of which more angles are tried
SCREEN = 0.94  # and of discs at 8×8 that may be alike
ANGLES = range(-24, 25, 6)  # degrees
BETWEEN = (-3.0, -1.5, 0.0, 1.5, 3.0)  # degrees beside each of them
POOL = 4  # pixels of the large thumbnail to one of the screened disc
FLAT = 1.0  # grey levels of deviation below which a picture shows nothing to compare

Parts = tuple[Tensor, Tensor]


def floats(of: Thumbnails) -> Iterator[Tensor]:
    """The small and the large pictures of each thumbnail."""
    return (torch.from_numpy(np.ascontiguousarray(of[name])).float() for name in ("small", "large"))


def screened_parts(pictures: Tensor, angle: float = 0) -> Parts:
    """The parts of the discs of (n, S, S), rotated by `angle` degrees and reduced by `POOL`.

    (n, m) each, of the pixels that are inside the disc.
    """
    size, half = pictures.shape[-1] // POOL, pictures.shape[-1] // POOL // 2
    _, inside = _reduced_disc(pictures.shape[-1])
    means = pictures.flatten(1) @ _reduction(pictures.shape[-1], angle)
    even, odd = parts_of(means.view(-1, size, size), inside)
    shown = inside[:, :half].flatten() > 0
    return even[:, shown], odd[:, shown]


@cache
def _reduction(size: int, angle: float) -> Tensor:
    """(S·S, s·s): rotating, masking and reducing a picture are linear, so one product of matrices.

    A tenth of the time of doing them one after another, and the same to float precision.
    """
    single = torch.eye(size**2).view(-1, size, size)  # a picture for each pixel
    share, _ = _reduced_disc(size)
    means = F.avg_pool2d(rotated(single, angle) * disc_mask(size), POOL)
    return (means / share.clamp(min=1 / POOL**2)).flatten(1)


def _reduced_disc(size: int) -> Parts:
    """(s, s) each: a reduced pixel's share of the disc, and 1 where it counts as inside."""
    share = F.avg_pool2d(disc_mask(size)[None], POOL)[0]
    return share, (share > 0.5).float()


def rotated(pictures: Tensor, angle: float) -> Tensor:
    """(n, S, S) rotated about the centre by `angle` degrees, bilinearly."""
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    how, size = torch.tensor([[[cos, -sin, 0.0], [sin, cos, 0.0]]]), pictures.shape[-1]
    grid = F.affine_grid(how, [1, 1, size, size], align_corners=False)
    return F.grid_sample(pictures[None], grid, padding_mode="border", align_corners=False)[0]


def disc_mask(size: int) -> Tensor:
    """(size, size): 1 for each pixel whose centre is in the circle inside the square, else 0."""
    at = (torch.arange(size) + 0.5) * 2 / size - 1
    return (at[:, None] ** 2 + at**2 <= 1).float()


def parts_of(pictures: Tensor, mask: Tensor) -> Parts:
    """Even and odd part of each of (n, S, S), of mean zero and norm one together: (n, S·S/2) each.

    Of the pixels where `mask`, symmetric under mirroring, is 1. A picture is the sum of its even
    part and its odd part under mirroring.
    """
    half, count = pictures.shape[-1] // 2, mask.sum()
    means = (pictures * mask).sum((1, 2), keepdim=True) / count
    values = (pictures - means) * mask
    norm = values.square().sum((1, 2), keepdim=True).sqrt()
    values = torch.where(norm > FLAT * count.sqrt(), values / norm.clamp(min=FLAT), 0.0)
    left, right = values[..., :half], values.flip(-1)[..., :half]
    scale = 0.5**0.5  # both halves of a part are equal but for the sign
    return ((left + right) * scale).flatten(1), ((left - right) * scale).flatten(1)


def correlation(a: Parts, b: Parts) -> Tensor:
    """(n, m): the larger correlation of each two pictures, straight or with one mirrored.

    With e and o the products of two pictures' parts these are e + o and e − o.
    """
    return a[0] @ b[0].T + (a[1] @ b[1].T).abs_()
