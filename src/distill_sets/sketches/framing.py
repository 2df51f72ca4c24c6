"""A face's points, and the square around it that is cut out of a photo, its eyes level."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from skimage.filters import gaussian
from torch import Tensor
from torch.nn import functional as F

from distill.data.decode import BadPhoto
from distill.data.faces import Face

Spot = tuple[float, float]  # x, y in pixels from the upper left corner of the upright picture

CAT_POINTS = 9
# From the eyes' centre to the mouth, where a cat's nose is. The files have no nose: they mark two
# eyes, the mouth and three points of each ear (Zhang, Sun, Tang 2008, "Cat Head Detection").
NOSE = 0.8


@dataclass(frozen=True)
class Points:
    """The eyes as seen in the upright face, left one first, and the nose; `others` are shown."""

    left: Spot
    right: Spot
    nose: Spot
    others: tuple[Spot, ...] = ()

    @property
    def spots(self) -> list[Spot]:
        """Left eye, right eye, nose, and the others."""
        return [self.left, self.right, self.nose, *self.others]

    @property
    def eyes(self) -> float:
        """Distance between the eyes."""
        return float(np.hypot(self.right[0] - self.left[0], self.right[1] - self.left[1]))

    @property
    def centre(self) -> Spot:
        """Halfway between the eyes."""
        return (self.left[0] + self.right[0]) / 2, (self.left[1] + self.right[1]) / 2


def cat_file(picture: Path) -> Path:
    """The points of NAME.jpg lie in NAME.jpg.cat beside it."""
    return picture.with_name(f"{picture.name}.cat")


def read_cat(path: Path, size: tuple[int, int]) -> Points:
    """A cat's points: `9 x1 y1 … x9 y9`, of left eye, right eye, mouth and the ears' corners.

    `size` is the picture's width and height. Raises BadPhoto with what is wrong with the file.
    """
    try:
        words = path.read_text(encoding="utf-8-sig").split()
    except FileNotFoundError:
        raise BadPhoto(f"no points: there is no {path.name!r}") from None
    except (OSError, UnicodeDecodeError):
        raise BadPhoto(f"no points: {path.name!r} cannot be read") from None
    try:
        count, *values = (float(word) for word in words)
        if count != CAT_POINTS or len(values) != 2 * CAT_POINTS or not np.isfinite(values).all():
            raise ValueError
    except ValueError:
        raise BadPhoto(f"no points: {path.name!r} is not 9 and nine times x y") from None
    spots = list(zip(values[::2], values[1::2], strict=True))
    left, right, mouth = spots[:3]
    centre = (left[0] + right[0]) / 2, (left[1] + right[1]) / 2
    nose = tuple(c + NOSE * (m - c) for c, m in zip(centre, mouth, strict=True))
    return _checked(left, right, (nose[0], nose[1]), spots[2:], size)


def of_face(face: Face, size: tuple[int, int]) -> Points:
    """A face with YuNet's five points or BlazeFace's six.

    Raises BadPhoto where its eyes are outside the picture.
    """
    assert face.points is not None
    left, right, nose, *mouth = face.points
    return _checked(left, right, nose, mouth, size)


def _checked(
    left: Spot, right: Spot, nose: Spot, others: Sequence[Spot], size: tuple[int, int]
) -> Points:
    """The eyes in the order that puts the nose below them, whichever the file's order is."""
    for x, y in (left, right):
        if not (0 <= x <= size[0] and 0 <= y <= size[1]):
            raise BadPhoto("no points: the eyes lie outside of the picture")
    across = right[0] - left[0], right[1] - left[1]
    down = nose[0] - (left[0] + right[0]) / 2, nose[1] - (left[1] + right[1]) / 2
    if across[0] * down[1] - across[1] * down[0] < 0:
        left, right = right, left
    return Points(left, right, nose, tuple(others))


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
    square = F.grid_sample(part[None] - shift, grid, "bicubic", mode, align_corners=False)
    return (square[0] + shift).clamp(0, 1)
