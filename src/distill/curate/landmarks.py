"""How far a target moves the points of a face: eyes, nose and mouth where the photo shows one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from distill.core import weights as weights_files
from distill.data import yunet
from distill.data.faces import Face

Pixels = NDArray[np.uint8]
FindLandmarks = Callable[[Pixels, Pixels], float]


def available_landmarks() -> FindLandmarks | None:
    """By YuNet, where its file is available (nothing is downloaded for it); else None."""
    file = weights_files.find_or_none(yunet.FILE)
    if file is None:
        return None
    find = yunet.YuNet(file)
    return lambda photo, target: moved(find(photo), find(target))


def moved(photo: list[Face], target: list[Face]) -> float:
    """The mean distance of the five points of the photo's largest face, in widths of that face.

    To those of the target's face that fits best. NaN where the photo shows none, infinite where
    the target does not.
    """
    if not photo or photo[0].points is None:
        return float("nan")
    width, own = photo[0].box.width, np.array(photo[0].points)
    away = [
        np.linalg.norm(own - np.array(each.points), axis=1).mean() / width
        for each in target
        if each.points is not None
    ]
    return float(min(away, default=np.inf))
