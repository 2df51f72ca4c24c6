"""What is known of each pair of a set: measured once, kept as it is made, resumed after a kill.

ROOT's pairs are read as training reads them, their centre squares at SIDE.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from distill.core import weights as weights_files
from distill.data import faces
from distill.data.faces import Face
from distill.data.pairs import Pair
from distill.data.photos import centre_square
from distill.data.shifts import SIDE, register
from distill.data.thumbnails import id_of_files, measured_rows
from distill_curate.style_change import BLOCK, StyleChange

STYLE_LAYERS = 3
SCORES = np.dtype(
    [
        ("id", "V16"),
        ("readable", "?"),
        ("fits", "?"),
        ("shifted", "?"),
        *((name, "f4") for name in ("down", "right", "agreement")),
        ("difference", "f4"),  # mean of |photo - target|, in levels of 255
        ("landmarks", "f4"),  # how far the points of a face moved, in widths of the face; NaN: none
        ("change", "f4", STYLE_LAYERS * BLOCK),  # of the style; NaN: not measured
    ]
)
FIGURES = [
    name for name in SCORES.names or () if SCORES[name].kind != "b" and name != "id"
]  # or NaN

Scores = NDArray[np.void]  # (n,) of SCORES
Pixels = NDArray[np.uint8]
FindLandmarks = Callable[[Pixels, Pixels], float]


def measure(
    pairs: Sequence[Pair], kept: Path, style: StyleChange | None, landmarks: FindLandmarks | None
) -> Scores:
    """The scores of every pair; those in the file `kept` of unchanged files are taken from there.

    A pair that cannot be read has `readable` false and no figures.
    """
    how = f"{style and style.identity} {landmarks is not None}"
    files = ([path.absolute() for path in (each.photo, each.target) if path] for each in pairs)

    def measure_pair(i: int, row: np.ndarray) -> None:
        for name in FIGURES:
            row[name] = np.nan
        photo, target = (np.array(centre_square(each, SIDE)) for each in pairs[i].read())
        row["readable"] = True
        registration = register(photo, target)
        for name in ("fits", "shifted", "down", "right", "agreement"):
            row[name] = getattr(registration, name)
        row["difference"] = np.abs(photo.astype(np.int16) - target).mean()
        if landmarks is not None:
            row["landmarks"] = landmarks(photo, target)
        if style is not None:
            both = (torch.from_numpy(each).permute(2, 0, 1)[None] for each in (photo, target))
            row["change"] = style(*both)[0]

    ids = [id_of_files(each, how) for each in files]
    return measured_rows(kept, SCORES, ids, measure_pair, ("pair", "curating"))


def available_landmarks() -> FindLandmarks | None:
    """By YuNet, where its file is available (nothing is downloaded for it); else None."""
    file = weights_files.find_or_none(faces.YUNET)
    if file is None:
        return None
    find = faces.YuNet(file)
    return lambda photo, target: moved(find(photo), find(target))


def moved(photo: list[Face], target: list[Face]) -> float:
    """The mean distance of the five points of the photo's largest face, in widths of that face.

    To those of the target's face that fits best. NaN where the photo shows none, infinite where
    the target does not.
    """
    if not photo or photo[0].points is None:
        return float("nan")
    width, points = photo[0].box.width, np.array(photo[0].points)
    away = [
        np.linalg.norm(points - np.array(each.points), axis=1).mean() / width
        for each in target
        if each.points is not None
    ]
    return float(min(away, default=np.inf))
