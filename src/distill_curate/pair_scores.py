"""What is known of each pair of a set: measured once, kept as it is made, resumed after a kill.

ROOT's pairs are read as training reads them, their centre squares at SIDE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from distill.core import weights as weights_files
from distill.core.progress import bar
from distill.data import faces
from distill.data.faces import Face
from distill.data.pairs import Pair
from distill.data.photos import BadPhoto, centre_square
from distill.data.shifts import SIDE, register
from distill.data.thumbnails import id_of_files, load_rows, save_rows
from distill_curate.style_change import BLOCK, StyleChange

BATCH = 4  # pairs whose style is measured at once
SAVE_EVERY = 200  # pairs; a kill loses at most so many
STYLE_LAYERS = 3
SCORES = np.dtype(
    [
        ("id", "V16"),
        ("readable", "?"),
        *((name, "?") for name in ("fits", "shifted")),
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
    pairs: Sequence[Pair],
    kept: Path,
    style: StyleChange | None,
    landmarks: FindLandmarks | None,
) -> Scores:
    """The scores of every pair; those in the file `kept` of unchanged files are taken from there.

    A pair that cannot be read has `readable` false and no figures.
    """
    rows = np.zeros(len(pairs), SCORES)
    how = f"{style and style.identity} {landmarks is not None}"
    rows["id"] = [
        id_of_files([path.absolute() for path in (pair.photo, pair.target) if path], how)
        for pair in pairs
    ]
    measured, missing = load_rows(kept, SCORES), []
    for i, row in enumerate(rows):
        if (earlier := measured.get(row["id"].tobytes())) is None:
            missing.append(i)
        else:
            rows[i] = earlier
    with bar(len(missing), "pair", "curating") as progress:
        done, saved = [i for i in range(len(rows)) if i not in {*missing}], 0
        for start in range(0, len(missing), BATCH):
            part = missing[start : start + BATCH]
            _measure(rows, part, pairs, style, landmarks)
            done += part
            progress.update(len(part))
            if progress.n - saved >= SAVE_EVERY:
                save_rows(kept, rows[done])
                saved = progress.n
    save_rows(kept, rows)
    return rows


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


def _measure(
    rows: Scores,
    part: Sequence[int],
    pairs: Sequence[Pair],
    style: StyleChange | None,
    landmarks: FindLandmarks | None,
) -> None:
    read = []
    for i in part:
        for name in FIGURES:
            rows[i][name] = np.nan
        with suppress(BadPhoto):
            photo, target = (np.asarray(centre_square(each, SIDE)) for each in pairs[i].read())
            read.append((i, photo, target))
    for i, photo, target in read:
        row = rows[i]
        row["readable"] = True
        registration = register(photo, target)
        for name in ("fits", "shifted", "down", "right", "agreement"):
            row[name] = getattr(registration, name)
        row["difference"] = np.abs(photo.astype(np.int16) - target).mean()
        if landmarks is not None:
            row["landmarks"] = landmarks(photo, target)
    if style is not None and read:
        photos, targets = (
            torch.from_numpy(np.stack([each[k] for each in read])).permute(0, 3, 1, 2)
            for k in (1, 2)
        )
        rows["change"][[each[0] for each in read]] = style(photos, targets)
