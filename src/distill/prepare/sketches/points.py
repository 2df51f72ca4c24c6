"""Where a face's eyes and nose are: cats' nine-point files, and people's five points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

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
    """A face with YuNet's five points. Raises BadPhoto where its eyes are outside the picture."""
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
