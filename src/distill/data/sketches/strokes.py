"""Lines as a finger draws them: none too short, all of one width, black on white."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt
from skimage.draw import line
from skimage.measure import label

from distill.data.sketches.edges import Lines
from distill.data.sketches.points import Spot

# In distances between the eyes.
EYE = 0.2  # radius of an eye's circle
NOSE = 0.3  # side of the nose's triangle
EYE_ROOM, NOSE_ROOM = 0.3, 0.3  # radius around each in which nothing else is drawn


def long_ones(lines: Lines, least: int) -> Lines:
    """The lines of at least so many pixels; pixels that touch, also by a corner, are one line."""
    parts = label(lines, connectivity=2)
    lengths = np.bincount(parts.ravel())
    lengths[0] = 0
    return (lengths >= max(least, 1))[parts]


def drawn(lines: Lines, width: float) -> NDArray[np.float32]:
    """Strokes `width` pixels wide around the lines: 0 where there is ink, 1 where there is none.

    Their rims are a pixel soft, as those of a drawing program.
    """
    if not lines.any():
        return np.ones(lines.shape, np.float32)
    away = distance_transform_edt(~lines)
    return np.clip(away - width / 2 + 0.5, 0, 1).astype(np.float32)


def cleared(lines: Lines, left: Spot, right: Spot, nose: Spot) -> Lines:
    """Without what lies where the marks of eyes and nose will be."""
    eyes = math.dist(left, right)
    rooms = ((left, EYE_ROOM), (right, EYE_ROOM), (nose, NOSE_ROOM))
    taken = [_within(lines.shape, spot, room * eyes) for spot, room in rooms]
    return lines & ~np.logical_or.reduce(taken)


def marked(lines: Lines, left: Spot, right: Spot, nose: Spot) -> Lines:
    """With circles at the eyes and a triangle, its tip below, at the nose."""
    eyes = math.dist(left, right)
    half, high = NOSE * eyes / 2, NOSE * eyes * math.sqrt(3) / 4
    triangle = [(-half, -high), (half, -high), (0.0, high)]
    page = lines.copy()
    _closed(page, [(nose[0] + x, nose[1] + y) for x, y in triangle])
    for eye in (left, right):
        _closed(page, _circle(eye, EYE * eyes))
    return page


def _within(shape: tuple[int, ...], centre: Spot, radius: float) -> Lines:
    rows, columns = np.ogrid[: shape[0], : shape[1]]
    return np.hypot(columns + 0.5 - centre[0], rows + 0.5 - centre[1]) <= radius


def _circle(centre: Spot, radius: float) -> list[Spot]:
    turns = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    return [(centre[0] + radius * math.cos(t), centre[1] + radius * math.sin(t)) for t in turns]


def _closed(page: Lines, corners: list[Spot]) -> None:
    """Draw the closed line through the corners; what lies outside of the page is left out."""
    for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1], strict=True):
        rows, columns = line(*(math.floor(v) for v in (y0, x0, y1, x1)))
        inside = (rows >= 0) & (rows < page.shape[0])
        inside &= (columns >= 0) & (columns < page.shape[1])
        page[rows[inside], columns[inside]] = True
