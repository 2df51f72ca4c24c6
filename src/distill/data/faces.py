"""Where the faces of a photo are: by a cascade, or by a network, YuNet, which gives points too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from distill.core import process
from distill.core.errors import DistillError, needed
from distill.core.sessions import open_file
from distill.core.weights import WeightsFile

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


YUNET = WeightsFile(
    "face_detection_yunet_2023mar.onnx",
    "https://github.com/opencv/opencv_zoo/raw/main/models/face_detection_yunet/"
    "face_detection_yunet_2023mar.onnx",
    sha256="8f2383e4dd3cfbb4553ea8718107fc0423210dc964f9f4280604804ed2552fa4",
)
STRIDES = (8, 16, 32)
OUTPUTS = [f"{kind}_{stride}" for kind in ("cls", "obj", "bbox", "kps") for stride in STRIDES]
SIDE = 640  # pixels of the network's picture
# Long sides that a photo is looked at in, until faces are found: the network is meant for faces of
# 10 to 300 pixels, and one that fills a photo of 640 is larger.
LONG_SIDES = (640, 320, 160)
SCORE = 0.7  # below it a candidate is no face; OpenCV's default of 0.9 is for few false alarms
OVERLAP = 0.3  # of two boxes that share more of their area than this, the better one stays

Array = NDArray[np.float32]


class YuNet:
    """An upright RGB photo (H, W, 3) to its faces with five points each, the largest first.

    A network of 76 thousand parameters (Wu, Peng, Yu 2023); the file is OpenCV zoo's (MIT), run in
    ONNX Runtime. For each of three strides it gives a grid of candidates: class and objectness, a
    box and five points, all relative to the candidate's own cell.

    It saw a face in 60 of 60 aligned portraits, 60 of 60 selfies, and 14 of 90 scenes and things,
    in some of which there is one. On all of them its boxes, points and scores were those of
    OpenCV's FaceDetectorYN, but for rounding to whole pixels.

    Raises DistillError for a file that is not YuNet's.
    """

    def __init__(self, path: Path) -> None:
        self._session = open_file(path, process.compute_threads())
        missing = {*OUTPUTS} - {output.name for output in self._session.get_outputs()}
        if missing or len(self._session.get_inputs()) != 1:
            raise DistillError(f"{path}: not YuNet, it has no output {min(missing, default='')}")
        self._input = self._session.get_inputs()[0].name

    def __call__(self, photo: NDArray[np.uint8]) -> list[Face]:
        for side in LONG_SIDES:
            scale = min(side / max(photo.shape[:2]), 1)
            if faces := self._find(photo, scale):
                return faces
        return []

    def _find(self, photo: NDArray[np.uint8], scale: float) -> list[Face]:
        """The faces in a photo that is looked at in this scale, in pixels of the photo."""
        height, width = (max(1, round(side * scale)) for side in photo.shape[:2])
        small = Image.fromarray(photo).resize((width, height), Image.Resampling.BILINEAR)
        canvas = np.zeros((SIDE, SIDE, 3), np.float32)  # black beyond the photo, as OpenCV has it
        canvas[:height, :width] = np.asarray(small)
        planes = np.ascontiguousarray(canvas[..., ::-1].transpose(2, 0, 1)[None])  # BGR, 0 to 255
        values = self._session.run(OUTPUTS, {self._input: planes})
        found = decode(dict(zip(OUTPUTS, values, strict=True)), SIDE // STRIDES[0], SCORE)
        shrunk, faces = np.array([photo.shape[1] / width, photo.shape[0] / height]), []
        for score, box, spots in zip(*found, strict=True):
            (left, top), (right, bottom) = (box.reshape(2, 2) * shrunk).round().astype(int).tolist()
            five = tuple((float(x), float(y)) for x, y in spots * shrunk)
            faces.append(Face(Box(top, left, bottom - top, right - left), five, float(score)))
        return sorted(faces, key=lambda face: face.box.height * face.box.width, reverse=True)


def decode(outputs: dict[str, Array], columns: int, least: float) -> tuple[Array, Array, Array]:
    """Scores (N,), boxes (N, 4) as left, top, right, bottom and points (N, 5, 2), in pixels.

    `outputs` are the twelve by name, (1, cells, values) each, cells row by row; `columns` is how
    many cells of the finest stride lie in a row, `least` the smallest score. The best come first,
    and what overlaps a better one is left out.
    """
    parts = []
    for stride in STRIDES:
        sure, there, box, five = (
            outputs[f"{kind}_{stride}"][0] for kind in ("cls", "obj", "bbox", "kps")
        )
        score = np.sqrt(sure.clip(0, 1) * there.clip(0, 1))[:, 0]
        row, column = np.divmod(np.arange(len(box)), columns * STRIDES[0] // stride)
        corner = np.stack([column, row], 1).astype(np.float32)
        centre, half = (corner + box[:, :2]) * stride, np.exp(box[:, 2:]) * stride / 2
        spots = (corner[:, None] + five.reshape(-1, 5, 2)) * stride
        parts.append((score, np.concatenate([centre - half, centre + half], 1), spots))
    scores, boxes, points = (np.concatenate(each) for each in zip(*parts, strict=True))
    enough = scores >= least
    scores, boxes, points = scores[enough], boxes[enough], points[enough]
    best = strongest(boxes, scores)
    return scores[best], boxes[best], points[best]


def strongest(boxes: Array, scores: Array) -> list[int]:
    """Which boxes stay where they overlap, the best first: greedy non-maximum suppression.

    Boxes are left, top, right, bottom.
    """
    area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    left, kept = np.argsort(-scores, kind="stable"), []
    while len(left):
        first, left = left[0], left[1:]
        kept.append(int(first))
        start = np.maximum(boxes[first, :2], boxes[left, :2])
        end = np.minimum(boxes[first, 2:], boxes[left, 2:])
        shared = (end - start).clip(0).prod(1)
        left = left[shared <= OVERLAP * (area[first] + area[left] - shared)]
    return kept
