"""Where the parts of a frame were in the frame before it.

Lucas and Kanade's iterative registration (1981) from coarse to fine, in windows around the nodes
of a grid; between nodes the motion is interpolated. In Pillow and NumPy: the page's install has no
OpenCV or SciPy, and a frame of 640×480 takes about 10 ms.
"""

from dataclasses import dataclass

import numpy as np
from PIL import Image

CELL = 16  # pixels between nodes, in each level
LEVELS = (4, 2, 1)  # how much smaller than the finest each level is, and how often it is solved
STEPS = (3, 2, 1)
REST = 0.05  # pixels below which a camera's step is noise
LONG = 640  # pixels of the long side of a frame whose finest level is half its size
NOISE = 1.0  # squared slope a pixel that says as much as a camera's noise does
EDGE = 3  # pixels around a frame in which nothing is compared, in each level
MOST = 2.0  # pixels that a step may move a node by
BILINEAR, BICUBIC = Image.Resampling.BILINEAR, Image.Resampling.BICUBIC


@dataclass(frozen=True)
class Motion:
    """Of a frame against the one before: `flow` (rows + 1, columns + 1, 2) is how far to the right
    and down the nodes, `cell` pixels apart, lay there. `travel` is how far the camera has moved
    since the first frame, in pixels to the right and down; `flow` of that frame is None.
    """

    flow: np.ndarray | None
    cell: int
    travel: np.ndarray


class MotionTracker:
    """The `Motion` of frame after frame, uint8 (height, width, 3)."""

    def __init__(self) -> None:
        self._last: list[Image.Image] = []
        self._size: tuple[int, ...] = ()
        self._travel = np.zeros(2)

    def __call__(self, picture: np.ndarray) -> Motion:
        finest = 2 * max(1, round(max(picture.shape[:2]) / LONG))
        grey = Image.fromarray(padded(picture, CELL * LEVELS[0] * finest)).convert("L").convert("F")
        before, self._last = self._last, [grey.reduce(each * finest) for each in LEVELS]
        size, self._size, cell = self._size, picture.shape, CELL * finest
        if size != self._size:
            return Motion(None, cell, self._travel)
        flow = np.zeros([1 + side // CELL for side in self._last[0].size[::-1]] + [2])
        for now, then, level, steps in zip(self._last, before, LEVELS, STEPS, strict=True):
            if level != LEVELS[0]:
                flow = _doubled(flow)
            inside = [side // (level * finest) - EDGE for side in size[:2]]
            flow, texture = _registered(now, then, flow, steps, inside)
        step = finest * np.median(flow[texture >= np.median(texture)], 0)
        self._travel = self._travel + np.where(np.abs(step) < REST, 0, step)
        return Motion(finest * flow, cell, self._travel)


def moved(
    picture: Image.Image, flow: np.ndarray, cell: int, resample: int = BICUBIC
) -> Image.Image:
    """A frame, sides multiples of `cell`, as the motion `flow`, in its pixels, says it goes on."""
    wide, high = picture.size
    down, across = np.mgrid[0 : high + 1 : cell, 0 : wide + 1 : cell]
    there = np.stack([across, down], -1) + flow[: down.shape[0], : down.shape[1]]
    at = np.clip(there, 0, picture.size)
    corners = np.concatenate([at[:-1, :-1], at[1:, :-1], at[1:, 1:], at[:-1, 1:]], -1)
    mesh = [
        ((x, y, x + cell, y + cell), corners[y // cell, x // cell].tolist())
        for y in range(0, high, cell)
        for x in range(0, wide, cell)
    ]
    return picture.transform(picture.size, Image.Transform.MESH, mesh, resample)


def padded(picture: np.ndarray, cell: int) -> np.ndarray:
    """Filled up at the lower right by the last row and column, to sides that are multiples."""
    high, wide = picture.shape[:2]
    return np.pad(picture, ((0, -high % cell), (0, -wide % cell), (0, 0)), "edge")


def _registered(
    now: Image.Image, then: Image.Image, flow: np.ndarray, steps: int, inside: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """A better flow, in pixels of these pictures (mode F), and the texture around each node.

    Only what lies `inside` counts, from `EDGE` on: the rest may have come in from beyond.
    """
    levels = np.asarray(now)
    counts = np.zeros_like(levels)
    counts[EDGE : max(inside[0], 0), EDGE : max(inside[1], 0)] = 1
    down, across = (counts * each for each in np.gradient(levels))
    xx, xy, yy = (_window(each) for each in (across * across, across * down, down * down))
    texture = xx + yy
    xx, yy = xx + NOISE, yy + NOISE
    for _ in range(steps):
        error = np.asarray(moved(then, flow, CELL, BILINEAR)) - levels
        x, y = _window(across * error), _window(down * error)
        step = np.stack([xy * y - yy * x, xy * x - xx * y], -1) / (xx * yy - xy * xy)[..., None]
        flow = flow + step.clip(-MOST, MOST)
    return flow, texture


def _window(values: np.ndarray) -> np.ndarray:
    """The mean around each node, of the cells that touch it."""
    high, wide = values.shape
    cells = values.reshape(high // CELL, CELL, wide // CELL, CELL).mean((1, 3))
    near = np.pad(cells, 1, "edge")
    return (near[:-1, :-1] + near[1:, :-1] + near[:-1, 1:] + near[1:, 1:]) / 4


def _doubled(flow: np.ndarray) -> np.ndarray:
    """On a level of twice the size: a node more between each two, and twice the pixels."""
    for axis in (0, 1):
        between = (flow.take(range(1, flow.shape[axis]), axis) + np.delete(flow, -1, axis)) / 2
        flow = np.insert(flow, range(1, flow.shape[axis]), between, axis)
    return 2 * flow
