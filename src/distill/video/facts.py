"""What a video is made of: its frames, and what is the same for all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from distill.video.pixels import Colours


@dataclass(frozen=True)
class Frame:
    """A picture, uint8 (height, width, 3), upright, from `pts` on for `duration` time bases."""

    pts: int
    duration: int
    picture: np.ndarray
    drawn: np.ndarray | None = None

    def with_drawn(self, drawn: np.ndarray) -> Frame:
        return replace(self, drawn=drawn)


@dataclass(frozen=True)
class Facts:
    """What a drawn video takes over. `size` is width and height of an upright frame."""

    size: tuple[int, int]
    time_base: Fraction
    rate: Fraction | None
    pixel_shape: Fraction
    colours: Colours
    frames: int | None  # about as many


def clock(seconds: Fraction) -> str:
    """For messages."""
    return f"{float(seconds):.1f} s"
