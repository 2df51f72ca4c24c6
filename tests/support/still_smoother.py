"""The filter over time of the page (web/src/steady.ts), for frames in which nothing moves."""

import numpy as np
from PIL import Image
from scipy.ndimage import maximum_filter

BLOCK = 8  # pixels a side whose mean is compared: an eighth of the sensor's noise is left
STILL = 3.0  # levels of 255 that a block's mean may change by and still be mixed by a third


class StillSmoother:
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
