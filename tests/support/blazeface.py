"""The page's face detector in NumPy, apart from the page's own code: for tests and benchmarks.

Written from the settings of MediaPipe's graph face_detection_short_range: SSD anchors of strides 8,
16, 16, 16, fixed at one size; scores clipped at 100; boxes of one face averaged by their scores.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image

NETWORK = (
    Path(__file__).parents[2] / "web/networks/blazeface_short_range/blazeface_short_range.onnx"
)
SIDE = 128
STRIDES = (8, 16, 16, 16)


@dataclass(frozen=True)
class Face:
    """In shares of the picture's width and height: left, top, right, bottom; six points (6, 2)."""

    score: float
    box: np.ndarray
    points: np.ndarray


def faces(picture: Image.Image, least: float = 0.5) -> list[Face]:
    """Those of which the network is as sure as `least`, the surest first."""
    scale = SIDE / max(picture.size)
    size = np.round(scale * np.array(picture.size)).astype(int)
    corner = (SIDE - size) // 2
    square = Image.new("RGB", (SIDE, SIDE))
    square.paste(picture.resize(tuple(size), Image.Resampling.BILINEAR), tuple(corner))
    photo = np.asarray(square, np.float32).transpose(2, 0, 1)[None] / 255
    boxes, scores = session().run(["boxes", "scores"], {"photo": photo})
    found = []
    for score, values in merged(boxes[0].astype(float), scores[0, :, 0].astype(float), least):
        places = (SIDE * values.reshape(8, 2) - corner) / size
        found.append(Face(score, places[:2].ravel(), places[2:]))
    return found


@cache
def session() -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(NETWORK)


def anchors() -> np.ndarray:
    """(896, 2): strides of one length in a row share their cells, two boxes each."""
    found = []
    for stride in dict.fromkeys(STRIDES):
        cells = SIDE // stride
        middles = (np.mgrid[:cells, :cells][::-1].reshape(2, -1).T + 0.5) / cells
        found.append(middles.repeat(2 * STRIDES.count(stride), 0))
    return np.concatenate(found)


def merged(boxes: np.ndarray, scores: np.ndarray, least: float) -> list[tuple[float, np.ndarray]]:
    """Corners and points of each face, 16 values in shares of the square."""
    sure = 1 / (1 + np.exp(-scores.clip(-100, 100)))
    values = boxes.reshape(-1, 8, 2) / SIDE
    half = values[:, 1] / 2
    middle = values[:, 0] + anchors()
    points = values[:, 2:] + anchors()[:, None]
    places = np.concatenate([(middle - half)[:, None], (middle + half)[:, None], points], 1)
    left = [i for i in np.argsort(-sure, kind="stable") if sure[i] >= least]
    found = []
    while left:
        same = [i for i in left if i == left[0] or union_share(places[left[0]], places[i]) > 0.3]
        mean = np.average(places[same], axis=0, weights=sure[same])
        found.append((float(sure[left[0]]), mean.ravel()))
        left = [i for i in left if i not in same]
    return found


def union_share(one: np.ndarray, other: np.ndarray) -> float:
    both = np.prod((np.minimum(one[1], other[1]) - np.maximum(one[0], other[0])).clip(0))
    areas = np.prod(one[1] - one[0]) + np.prod(other[1] - other[0])
    return float(both / (areas - both))
