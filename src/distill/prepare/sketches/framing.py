"""The square that is cut out of a photo, turned so that the eyes are level."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from skimage.filters import gaussian
from torch import Tensor
from torch.nn import functional as F

from distill.prepare.sketches.points import Points, Spot


@dataclass(frozen=True)
class SquareFrame:
    """A square in a picture: its centre and side in pixels, and how far it is turned clockwise."""

    x: float
    y: float
    side: float
    angle: float = 0.0  # radians

    def place(self, spot: Spot, size: int) -> Spot:
        """Where a spot of the picture lies in the square when that is `size` pixels wide."""
        cos, sin, scale = math.cos(self.angle), math.sin(self.angle), size / self.side
        dx, dy = spot[0] - self.x, spot[1] - self.y
        return (dx * cos + dy * sin) * scale + size / 2, (dy * cos - dx * sin) * scale + size / 2


def around_face(points: Points, side: float, eyes: float) -> SquareFrame:
    """The square of `side` eye distances; the eyes lie at the share `eyes` of it from above."""
    across = points.right[0] - points.left[0], points.right[1] - points.left[1]
    angle = math.atan2(across[1], across[0])
    width, below = points.eyes * side, points.eyes * side * (0.5 - eyes)
    x, y = points.centre
    return SquareFrame(x - math.sin(angle) * below, y + math.cos(angle) * below, width, angle)


def in_the_middle(width: int, height: int, crop: float) -> SquareFrame:
    """The centre square, `crop` times the short side wide."""
    return SquareFrame(width / 2, height / 2, min(width, height) * crop)


def cut(picture: Tensor, frame: SquareFrame, size: int, beyond: float | None) -> Tensor:
    """The square of a (C, H, W) picture at size × size, in [0, 1].

    Bicubic, after a blur where it gets smaller (averaged by whole factors down to twice the size,
    then Gaussian), so that nothing aliases. Outside of the picture is the value `beyond`; None:
    its outermost pixels go on.
    """
    # What the square touches, with a rim for what blurs.
    height, width = picture.shape[-2:]
    reach = frame.side * (abs(math.cos(frame.angle)) + abs(math.sin(frame.angle))) / 2
    reach += 8 + 0.1 * frame.side
    left, right = (int(min(max(frame.x + d, 0), width)) for d in (-reach, reach + 1))
    top, bottom = (int(min(max(frame.y + d, 0), height)) for d in (-reach, reach + 1))
    part = picture[:, top:bottom, left:right]
    factor = max(1, int(frame.side / size // 2))
    if factor > 1:
        part = F.avg_pool2d(part[None], factor, ceil_mode=True, count_include_pad=False)[0]
    scale = frame.side / size / factor
    if scale > 1:
        sigma = (scale - 1) / 2
        soft = gaussian(part.numpy(), sigma, mode="nearest", channel_axis=0, preserve_range=True)
        part = torch.from_numpy(np.asarray(soft, np.float32))
    # Where each pixel of the square lies in the part, as grid_sample counts: -1 to 1.
    at = ((torch.arange(size, dtype=torch.float64) + 0.5) / size - 0.5) * frame.side
    v, u = torch.meshgrid(at, at, indexing="ij")
    cos, sin = math.cos(frame.angle), math.sin(frame.angle)
    x = (frame.x + u * cos - v * sin - left) / factor
    y = (frame.y + u * sin + v * cos - top) / factor
    grid = torch.stack([2 * x / part.shape[2] - 1, 2 * y / part.shape[1] - 1], -1)[None].float()
    shift = beyond or 0.0
    mode = "border" if beyond is None else "zeros"
    found = F.grid_sample(part[None] - shift, grid, "bicubic", mode, align_corners=False)
    return (found[0] + shift).clamp(0, 1)
