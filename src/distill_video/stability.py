"""How much consecutive stylised frames differ beyond the video's own motion.

The mean warped difference: the frame before is moved along the optical flow between the two
pictures and subtracted (Lai et al., 'Learning Blind Video Temporal Consistency', 2018, equation 6,
with absolute in the place of squared differences). The input frames' own is measured in the same
way, since noise, light and an imperfect flow are in it too.
"""

from dataclasses import dataclass

import numpy as np
from PIL import Image
from skimage.color import rgb2gray
from skimage.registration import optical_flow_ilk
from skimage.transform import warp

SIZE = 256  # pixels of the long side that is measured at
AGREE = 0.5  # pixels by which the flow there and back may miss its start
# On a photo moved by 0.35 and 0.15 pixels, with noise of 2.5 levels: off by 0.06 pixels (median),
# 0.09 with scikit-image's defaults, which take four times as long.
_FLOW = {"radius": 10, "num_warp": 3, "dtype": np.float32}
_BILINEAR = {"order": 1, "mode": "edge"}


@dataclass(frozen=True)
class Stability:
    """Mean warped differences in levels of 255, by the names that NAME.stability.json has.

    Of the input frames (`pictures`) and the stylised ones before (`unsmoothed`) and after smoothing
    (`drawings`), over `pairs` of frames; `visible` is the share of pixels that both frames show.
    """

    pairs: int
    pictures: float
    unsmoothed: float
    drawings: float
    visible: float

    @property
    def ratio(self) -> float | None:
        """The outputs' by the inputs'; None where those do not differ at all."""
        return self.drawings / self.pictures if self.pictures else None


class StabilityMeter:
    """Takes the frames of a video one after the other; keeps the last one, small.

    Every `every`-th frame is measured against the one before it.
    """

    def __init__(self, every: int = 1) -> None:
        self._every, self._count = every, 0
        self._last: list[np.ndarray] = []
        self._sums = np.zeros(3)
        self._visible, self._pairs = 0.0, 0

    def add(self, picture: np.ndarray, unsmoothed: np.ndarray, smoothed: np.ndarray) -> None:
        """uint8 (height, width, 3), of equal size."""
        before, self._last = self._last, []
        for each in (picture, unsmoothed, smoothed):
            small = Image.fromarray(each)
            small.thumbnail((SIZE, SIZE), Image.Resampling.BOX)
            self._last.append(np.asarray(small, np.float32))
        number, self._count = self._count, self._count + 1
        if not before or number % self._every:
            return
        flow, visible = motion(before[0], self._last[0])
        if visible.any():
            pairs = zip(before, self._last, strict=True)
            self._sums += [warped_difference(*pair, flow, visible) for pair in pairs]
            self._visible += visible.mean()
            self._pairs += 1

    def result(self) -> Stability | None:
        """None without a pair of frames that show the same."""
        if not self._pairs:
            return None
        pictures, unsmoothed, drawings = (self._sums / self._pairs).tolist()
        visible = float(self._visible / self._pairs)
        return Stability(self._pairs, pictures, unsmoothed, drawings, visible)


def motion(before: np.ndarray, now: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each pixel of `now` was, as (2, height, width) steps down and right, and which were.

    A pixel counts as visible in both where the way there and back ends within half a pixel of its
    start, inside of the picture.
    """
    first, second = rgb2gray(before / 255), rgb2gray(now / 255)
    there = optical_flow_ilk(second, first, **_FLOW)
    back = optical_flow_ilk(first, second, **_FLOW)
    spots = np.indices(first.shape, np.float32) + there
    returned = there + np.stack([warp(part, spots, **_BILINEAR) for part in back])
    high, wide = first.shape
    inside = (spots >= 0).all(0) & (spots[0] <= high - 1) & (spots[1] <= wide - 1)
    return there, inside & (np.hypot(*returned) < AGREE)


def warped_difference(
    before: np.ndarray, now: np.ndarray, flow: np.ndarray, visible: np.ndarray
) -> float:
    """Mean absolute difference over the visible pixels and all colours, in the pictures' units."""
    spots = np.indices(flow.shape[1:], np.float32) + flow
    warped = np.stack([warp(band, spots, **_BILINEAR) for band in before.transpose(2, 0, 1)], -1)
    return float(np.abs(now - warped)[visible].mean())
