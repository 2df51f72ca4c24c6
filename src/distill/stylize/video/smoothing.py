"""A light filter over time: an output is mixed with the one before where nothing moves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PIL import Image
from scipy.ndimage import maximum_filter

BLOCK = 8  # pixels a side whose mean is compared: an eighth of the sensor's noise is left
SCENE = 0.2  # of its length that a summary may change by and still be mixed by a third
STILL = 3.0  # levels of 255 that a block's mean may change by and still be mixed by a third


class Smoother:
    """Mixes a stylised frame with the last result by `strength` (0 to below 1) where nothing moves.

    out = stylised + w · (last - stylised), w = strength · exp(-(d / 3)²), d the change of the input
    in levels of 255: of the means of blocks of 8×8 pixels, the largest of three colours and of the
    block's neighbours. d is taken to the input mixed by the same weights, so that slow changes,
    each too small to notice, end the mixing before a trail can be seen. Only the past counts, and
    one picture is kept.
    """

    def __init__(self, strength: float) -> None:
        self._strength = strength
        self._last: np.ndarray | None = None
        self._reference: np.ndarray = np.zeros(0)

    def __call__(self, picture: np.ndarray, stylised: np.ndarray) -> np.ndarray:
        """A frame and its output, both uint8 (height, width, 3); gives the mixed output."""
        means = np.asarray(Image.fromarray(picture).reduce(BLOCK), np.float32)
        result = stylised.astype(np.float32)
        if self._last is None or self._last.shape != stylised.shape:
            self._last, self._reference = result, means
            return stylised
        change = maximum_filter(np.abs(means - self._reference).max(2), 3)
        weight = self._strength * np.exp(-((change / STILL) ** 2))  # of every block
        self._reference = means + weight[..., None] * (self._reference - means)
        size = weight.shape[1] * BLOCK, weight.shape[0] * BLOCK
        pixels = np.asarray(Image.fromarray(weight).resize(size, Image.Resampling.BILINEAR))
        high, wide = stylised.shape[:2]  # the last blocks may reach beyond the edge
        self._last -= result
        self._last *= pixels[:high, :wide, None]
        self._last += result
        return (self._last + 0.5).astype(np.uint8)


class SmoothSummary:
    """A student's summary of a frame, mixed with the last frames' by `strength` (0 to below 1).

    What it is told of the whole picture then neither flickers nor, since the weight falls with the
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
