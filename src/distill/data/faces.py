"""Where the faces of a photo are: by a cascade, or by networks that give points too."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from distill.core import process, weights
from distill.core.errors import DistillError, needed
from distill.core.sessions import open_file
from distill.core.weights import WeightsFile

if TYPE_CHECKING:
    from skimage.feature import Cascade

LEAST = 8  # a face is at least this part of the short side; smaller ones are found where none are
MARKS = ("right_eye", "left_eye", "nose", "mouth", "right_ear", "left_ear")


class Box(NamedTuple):
    """A rectangle of pixels, `top` and `left` included."""

    top: int
    left: int
    height: int
    width: int


@dataclass(frozen=True)
class Face:
    """A box; `points`, where a detector gives them, are (x, y) of the right eye (the person's own,
    left in the picture), left eye, tip of the nose, and of YuNet's five the right and left corner
    of the mouth, of BlazeFace's six the middle of the mouth, right and left ear."""

    box: Box
    points: tuple[tuple[float, float], ...] | None = None
    score: float | None = None

    @property
    def marks(self) -> dict[str, complex]:
        """The points by their names, x + iy: right_eye, left_eye, nose, mouth, perhaps ears."""
        eyes_nose, (*rest,) = (self.points or ())[:3], (self.points or ())[3:]
        if len(rest) == 2:
            (ax, ay), (bx, by) = rest
            rest = [((ax + bx) / 2, (ay + by) / 2)]
        return {n: complex(*p) for n, p in zip(MARKS, (*eyes_nose, *rest), strict=False)}


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
    faces = cascade().detect_multi_scale(photo, 1.2, 1, (least, least), (short, short))
    boxes = [Box(f["r"], f["c"], f["height"], f["width"]) for f in faces]
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
        candidates = decode(dict(zip(OUTPUTS, values, strict=True)), SIDE // STRIDES[0], SCORE)
        shrunk, faces = np.array([photo.shape[1] / width, photo.shape[0] / height]), []
        for score, box, spots in zip(*candidates, strict=True):
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
    (enough,) = np.nonzero(scores >= least)
    best = enough[strongest(boxes[enough], scores[enough])]
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


BLAZEFACE = "blazeface_short_range"
LOOK = 128  # pixels of the square that BlazeFace looks at
CELLS = ((16, 2), (8, 6))  # a side of each of its grids, and how many candidates are in a cell
SURE, SURE_IN_TILES = 0.6, 0.8  # the page's, measured there: web/src/face_finder.ts
Look = tuple[float, NDArray[np.complex128]]  # score; both corners of a box and six points, x + iy
CLOSER = 2.0  # sides of a face's box: the square of the second look


def network_file(name: str) -> Path:
    """One of the page's networks, which come with the package."""
    package = Path(__file__).resolve().parents[1]
    places = (package / "networks", package.parents[1] / "web/networks")  # of a wheel, checkout
    files = (place / name / f"{name}.onnx" for place in places)
    return next(file for file in files if file.is_file())


class BlazeFace:
    """An upright RGB photo (H, W, 3) to its faces with six points each, the largest first.

    MediaPipe's short-range network of the page (Bazarevsky et al. 2019, Apache-2.0). It sees faces
    from a sixth of what it looks at; where the whole photo shows none, its parts are looked at.
    Each face is then looked at again, closer and level, which makes its points exact.
    """

    def __init__(self) -> None:
        self._session = open_file(network_file(BLAZEFACE), process.compute_threads())
        middles = [
            (np.stack(np.divmod(np.arange(cells**2), cells)[::-1], 1) + 0.5).repeat(boxes, 0)
            / cells
            for cells, boxes in CELLS
        ]
        self._anchors = LOOK * np.concatenate(middles)[:, None]

    def __call__(self, photo: NDArray[np.uint8]) -> list[Face]:
        picture = Image.fromarray(photo)
        faces = []
        for score, (start, end, *points) in self._whole(picture) or self._tiles(picture):
            side = max((end - start).real, 8)
            eyes, turn = frame(points[0], points[1], points[3])
            closer = self._look(picture, (start + end) / 2, CLOSER * side, SURE / 2, turn)
            near = [each for each in closer if abs(each[1][2:4].mean() - eyes) < side / 2]
            points = [*near[0][1][2:]] if near else points
            faces.append(_face(score, start, end, points))
        return sorted(faces, key=lambda face: face.box.height * face.box.width, reverse=True)

    def as_on_the_page(self, photo: NDArray[np.uint8]) -> list[Face]:
        """The faces of a still picture by the page's looks: its parts too, and each face once."""
        picture = Image.fromarray(photo)
        looks = _distinct(self._whole(picture) + self._tiles(picture))
        return [_face(score, start, end, points) for score, (start, end, *points) in looks]

    def _whole(self, photo: Image.Image) -> list[Look]:
        return self._look(photo, complex(*photo.size) / 2, max(photo.size))

    def _tiles(self, photo: Image.Image) -> list[Look]:
        half = min(photo.size) / 2
        along, down = (
            np.linspace(half / 2, side - half / 2, 1 + int(np.ceil(2 * side / half - 2)))
            for side in photo.size
        )
        spots = [complex(x, y) for y in down for x in along]
        return _distinct([e for at in spots for e in self._look(photo, at, half, SURE_IN_TILES)])

    def _look(
        self, photo: Image.Image, at: complex, side: float, sure: float = SURE, turn: complex = 1
    ) -> list[Look]:
        """Faces in the square around `at`, turned by the angle of `turn`, the surest first.

        Scores, and in pixels of the photo x + iy of both corners of the box and of six points.
        """
        step = side / LOOK * turn / abs(turn)
        planes = turned_square(photo, at, step, LOOK)
        boxes, scores = self._session.run(["boxes", "scores"], {"photo": planes})
        chance = 1 / (1 + np.exp(-scores[0, :, 0].clip(-100, 100).astype(float)))
        values = boxes[0].reshape(-1, 8, 2).astype(float)
        values[:, 2:] += self._anchors
        middle, half = values[:, :1] + self._anchors, values[:, 1:2] / 2
        corners = np.concatenate([middle - half, middle + half], 1).reshape(-1, 4)
        (likely,) = np.nonzero(chance >= sure)
        faces = []
        for best in likely[strongest(corners[likely].astype(np.float32), chance[likely])]:
            # Boxes of one face are averaged by their scores: their points then jitter less.
            start = np.maximum(corners[best, :2], corners[likely, :2])
            both = (np.minimum(corners[best, 2:], corners[likely, 2:]) - start).clip(0).prod(1)
            area = (corners[:, 2:] - corners[:, :2]).prod(1)
            same = likely[both > OVERLAP * (area[best] + area[likely] - both)]
            places = np.concatenate([corners[same].reshape(-1, 2, 2), values[same, 2:]], 1)
            mean = np.average(places, 0, chance[same]) - LOOK / 2
            faces.append((float(chance[best]), at + step * (mean[:, 0] + 1j * mean[:, 1])))
        return faces


def _distinct(looks: list[Look]) -> list[Look]:
    """Each face once, the surest: no box overlaps another, or has its middle in a surer one."""
    corners = np.array([[*places[:2]] for _, places in looks]).reshape(-1, 2)
    boxes = np.stack([corners.real, corners.imag], -1).reshape(-1, 4).astype(np.float32)
    kept: list[int] = []
    for i in strongest(boxes, np.array([score for score, _ in looks])):
        middle = boxes[i].reshape(2, 2).mean(0)
        start, end = boxes[kept, :2], boxes[kept, 2:]
        if not ((start < middle) & (middle < end)).all(1).any():
            kept.append(i)
    return [looks[i] for i in kept]


def _face(score: float, start: complex, end: complex, points: Iterable[complex]) -> Face:
    box = np.round([start.imag, start.real, (end - start).imag, (end - start).real])
    places = tuple((float(p.real), float(p.imag)) for p in points)
    return Face(Box(*map(int, box)), places, score)


def turned_square(photo: Image.Image, at: complex, step: complex, side: int) -> Array:
    """(1, 3, side, side) in [0, 1], of a photo around `at`; `step` is from a pixel to the next."""
    factor = max(1, round(abs(step)))
    corner = (at - step * complex(side, side) / 2) / factor
    a, b = (step / factor).real, (step / factor).imag
    affine = (a, -b, corner.real, b, a, corner.imag)
    square = photo.reduce(factor).transform(
        (side, side), Image.Transform.AFFINE, affine, Image.Resampling.BILINEAR
    )
    return np.asarray(square, np.float32).transpose(2, 0, 1)[None] / np.float32(255)


FACE_LANDMARK = WeightsFile("face_landmark.onnx")  # written by tools/mediapipe_networks.py
MESH, MESH_SIDES = 192, 3.6  # pixels of its square, and how many distances of the eyes those are
# The numbers of the outline of each brow among its 468 points.
BROWS = [
    [70, 63, 105, 66, 107, 55, 65, 52, 53, 46],
    [300, 293, 334, 296, 336, 285, 295, 282, 283, 276],
]


def brow_finder() -> Callable[[NDArray[np.uint8], Face], NDArray[np.complex128]]:
    """What gives the brows of a face in an RGB photo (H, W, 3): their outlines (2, 10), x + iy.

    By MediaPipe's mesh of a face (Kartynnik et al. 2019, Apache-2.0). Raises DistillError without
    its file.
    """
    if (file := weights.find_or_none(FACE_LANDMARK)) is None:
        how = "docs/students.md says what writes it"
        raise DistillError(f"brows: no {FACE_LANDMARK.name} in $DISTILL_WEIGHTS; {how}")
    session = open_file(file, process.compute_threads())

    def brows(photo: NDArray[np.uint8], face: Face) -> NDArray[np.complex128]:
        middle, unit = frame(*(face.marks[m] for m in ("right_eye", "left_eye", "mouth")))
        at, step = middle + 0.5j * unit, MESH_SIDES / MESH * unit
        square = turned_square(Image.fromarray(photo), at, step, MESH)
        points = session.run(["marks"], {"photo": square})[0].reshape(-1, 3)[BROWS]
        return at + step * (points[..., 0] + 1j * points[..., 1] - complex(MESH, MESH) / 2)

    return brows


def frame(right: complex, left: complex, mouth: complex) -> tuple[complex, complex]:
    """The middle of a face's eyes, and from there the way of one distance between them.

    By eyes and mouth: in profile the eyes' line is short, the mouth's distance is not.
    """
    between = (right + left) / 2
    unit = left - right - 1j * (mouth - between)
    return between, unit * max(abs(left - right), abs(mouth - between) / 1.06) / (abs(unit) or 1)


def point_finder() -> FindFaces:
    """A detector that gives points, without a download: YuNet where its file is, else BlazeFace."""
    file = weights.find_or_none(YUNET)
    return YuNet(file) if file else BlazeFace()
