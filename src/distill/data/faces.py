"""Where the faces of a photo are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from distill.core.errors import needed

if TYPE_CHECKING:
    from skimage.feature import Cascade

LEAST = 8  # a face is at least this part of the short side; smaller ones are found where none are


class Box(NamedTuple):
    """A rectangle of pixels, `top` and `left` included."""

    top: int
    left: int
    height: int
    width: int


@dataclass(frozen=True)
class Face:
    """A box; `points`, where a detector gives them, are (x, y) of the right eye (the person's own,
    left in the picture), left eye, tip of the nose, right and left corner of the mouth."""

    box: Box
    points: tuple[tuple[float, float], ...] | None = None
    score: float | None = None


FindFaces = Callable[[NDArray[np.uint8]], list[Face]]


def lbp_faces(photo: NDArray[np.uint8]) -> list[Face]:
    """The frontal faces of an upright RGB photo (H, W, 3), the largest first.

    By scikit-image's cascade of local binary patterns, 50 ms at 256². It sees upright faces from
    the front: in 1,076 of 1,137 aligned portraits, 51 of 95 selfies, and 10 of 177 scenes and
    things, in three of which there is none.
    """
    short = min(photo.shape[:2])
    least = max(24, short // LEAST)  # the cascade's own window is 24 pixels wide
    if short < least:
        return []
    found = cascade().detect_multi_scale(photo, 1.2, 1, (least, least), (short, short))
    boxes = [Box(f["r"], f["c"], f["height"], f["width"]) for f in found]
    return [Face(box) for box in sorted(boxes, key=lambda box: (box.width, box), reverse=True)]


@cache
def cascade() -> Cascade:
    """scikit-image's, loaded once. Raises DistillError where that is not installed."""
    with needed(
        "detector=lbp: needs scikit-image", "pip install scikit-image, or take detector=yunet"
    ):
        from skimage.data import lbp_frontal_face_cascade_filename
        from skimage.feature import Cascade
    return Cascade(lbp_frontal_face_cascade_filename())
