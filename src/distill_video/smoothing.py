"""Less flicker in stylised videos, along the motion of what they show."""

from collections.abc import Callable

import numpy as np
from PIL import Image, ImageFilter

from distill_video.motion import BICUBIC, BILINEAR, Motion, moved, padded

HALF = 2  # how much smaller than a frame the photo is kept
BLOCK = 4  # pixels a side whose mean is compared: a quarter of the sensor's noise is left
STILL = 8.0  # levels of 255 that a block's mean may change by and still be mixed by a third
SLIP = 1.0  # pixels that an edge may be off by, beside that
CUT = 0.25  # share of a frame that agrees with the last one, below which it is another scene
SCENE = 0.2  # of its length that a summary may change by and still be mixed by a third


class Smoother:
    """Mixes a stylised frame with the last result by `strength` (0 to below 1), along the motion.

    out = stylised + w · (last - stylised), w = strength · exp(-(d / t)²): `last` is the result of
    the frame before, moved as the photo was. d is how much the photo differs there in levels of
    255: of the means of blocks of 4×4 pixels, the largest of three colours and of the block's
    neighbours; t is 8 and what an edge's slope makes of a pixel. d is taken to the photo mixed and
    moved by the same weights, so that slow changes and small errors of the motion end the mixing
    before a trail can be seen. What was hidden, and another scene, is not mixed. Only the past
    counts, and one picture is kept.
    """

    def __init__(self, strength: float) -> None:
        self._strength = strength
        self._last: np.ndarray | None = None
        self._reference = Image.new("RGB", (0, 0))
        self._rest: np.ndarray = np.zeros(0)

    def __call__(self, picture: np.ndarray, stylised: np.ndarray, motion: Motion) -> np.ndarray:
        """A frame and its output, both uint8 (height, width, 3); gives the mixed output."""
        high, wide = stylised.shape[:2]
        cell = motion.cell
        small = Image.fromarray(padded(picture, cell)).reduce(HALF)
        if self._last is None or motion.flow is None:
            self._reference, self._last = small, padded(stylised, cell)
            self._rest = np.zeros_like(self._last, np.float32)
            return stylised
        photo = np.asarray(small, np.float32)
        reference = moved(self._reference, motion.flow / HALF, cell // HALF)
        change = np.asarray(reference, np.float32) - photo
        slope = np.hypot(*np.gradient(_blocks(photo).mean(2))) / BLOCK
        near = np.abs(_blocks(change)).max(2) / (STILL + SLIP * _maximum(slope))
        near = _maximum(near, 64)
        weight = self._strength * np.exp(-near * near)
        if (near < 1).mean() < CUT:
            weight = np.zeros_like(weight)
        mixed = photo + weight.repeat(2, 0).repeat(2, 1)[..., None] * change
        self._reference = Image.fromarray((mixed + 0.5).astype(np.uint8))
        last = np.asarray(moved(Image.fromarray(self._last), motion.flow, cell), np.float32)
        share = np.asarray(Image.fromarray(weight).resize(last.shape[1::-1], BILINEAR))
        result = padded(stylised, cell).astype(np.float32)
        last -= result
        last *= share[..., None]
        result += last
        result += self._rest  # what rounding left out, or the last levels would never be reached
        np.clip(result, 0, 255, out=result)
        self._last = (result + 0.5).astype(np.uint8)
        self._rest = result - self._last
        return self._last[:high, :wide]


def _blocks(values: np.ndarray) -> np.ndarray:
    """The means of blocks of 4×4 pixels of a frame at half size."""
    rows = values[::2] + values[1::2]  # NumPy's mean over two axes takes five times as long
    return (rows[:, ::2] + rows[:, 1::2]) / 4


def _maximum(values: np.ndarray, scale: int = 1) -> np.ndarray:
    """Of each value and its neighbours, in steps of 1 / scale, up to 255 of them."""
    steps = Image.fromarray((values * scale).clip(0, 255).astype(np.uint8))
    return np.asarray(steps.filter(ImageFilter.MaxFilter(3)), np.float32) / scale


def on_a_grid_that_moves(
    stylise: Callable[[np.ndarray], np.ndarray],
    picture: np.ndarray,
    travel: np.ndarray,
    period: float,
) -> np.ndarray:
    """What `stylise` makes of a frame, its grid fixed to the scene and not to the camera.

    A network of strides is equivariant to shifts by its whole stride alone: between them its
    strokes crawl over what it paints. So the frame is moved against the camera's `travel`, up to
    `period` pixels, its edges mirrored, and the output back.
    """
    high, wide = picture.shape[:2]
    side = int(np.ceil(period))
    canvas = Image.fromarray(np.pad(picture, ((side, side), (side, side), (0, 0)), "reflect"))
    right, down = ((travel + period / 2) % period).tolist()  # a camera that trembles stays within
    place = side - right, side - down
    size = wide + side, high + side
    box = (*place, place[0] + size[0], place[1] + size[1])
    output = Image.fromarray(stylise(np.asarray(canvas.resize(size, BICUBIC, box=box))))
    back = (right, down, right + wide, down + high)
    return np.asarray(output.resize((wide, high), BICUBIC, box=back))


class SmoothSummary:
    """A student's summary of a frame, mixed with the last frames' by `strength` (0 to below 1).

    Its summary of the whole picture then neither flickers nor, since the weight falls with the
    change, lasts from one scene into the next.
    """

    def __init__(self, summarise: Callable[[np.ndarray], np.ndarray], strength: float) -> None:
        self._summarise, self._strength = summarise, strength
        self._last: np.ndarray | None = None

    def __call__(self, photo: np.ndarray) -> np.ndarray:
        """(1, 3, H, W) in [0, 1] to (1, 64, 1, 1), frame after frame."""
        summary = self._summarise(photo)
        if self._last is not None:
            length = max(float(np.linalg.norm(summary)), 1e-12)
            change = float(np.linalg.norm(summary - self._last)) / length
            weight = self._strength * np.float32(np.exp(-((change / SCENE) ** 2)))
            summary = summary + weight * (self._last - summary)
        self._last = summary
        return summary
