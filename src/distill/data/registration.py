"""Displacement of a target from its photo, to a fraction of a pixel, by the edges of both.

A target shares its edges with the photo, not its colours: what is compared is the strength of the
gradient of the luma, blurred, by the phase of both spectra (Kuglin and Hines 1975; refined by
Guizar-Sicairos et al. 2008, scikit-image).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from distill.core.filters import REC_601

SIDE = 256  # pixels of the squares that are compared
FARTHEST = 12.0  # pixels; what seems to lie further off is taken for another picture
FINE, COARSE = 1.5, 6.0  # pixels of blur: outlines; where light and dark areas meet
FLAT = 1e-6  # deviation of the edges of a picture that has none
STEPS = 20  # parts of a pixel that are told apart
ROUNDS = 3  # the window pulls towards no shift at all: a shifted picture is measured again

Pixels = NDArray[np.uint8]
Grey = NDArray[np.float64]


@dataclass(frozen=True)
class Registration:
    """How far the target lies below (`down`) and to the right of its photo, in pixels at SIDE.

    `agreement` is the correlation of their edges once it is put back, -1 to 1; of a flat picture,
    and of one that fits nowhere, it is that of the pair as it is, with no shift.
    """

    down: float
    right: float
    agreement: float


def register(photo: Pixels, target: Pixels, blur: float = FINE) -> Registration:
    """Measure a pair of squares, uint8 (SIDE, SIDE, 3)."""
    from skimage.registration import phase_cross_correlation  # heavy: SciPy comes with it

    first, second = (_edges(each, blur) for each in (photo, target))
    window = np.outer(np.hanning(SIDE), np.hanning(SIDE))
    if min(first.std(), second.std()) < FLAT:
        return Registration(0.0, 0.0, 0.0)
    shift = np.zeros(2)
    for _ in range(ROUNDS):
        moved = _moved(second, -shift)
        windowed = ((each - each.mean()) * window for each in (first, moved))
        found, _, _ = phase_cross_correlation(*windowed, upsample_factor=STEPS, normalization=None)
        shift = shift - found
        if np.hypot(*shift) > FARTHEST:
            return Registration(0.0, 0.0, _agreement(first, second))
        if np.abs(found).max() < 1.5 / STEPS:
            break
    agreement = _agreement(first, _moved(second, -shift))
    as_it_is = _agreement(first, second)
    if agreement <= as_it_is:
        return Registration(0.0, 0.0, as_it_is)
    return Registration(float(shift[0]), float(shift[1]), agreement)


def _edges(picture: Pixels, blur: float) -> Grey:
    from scipy import ndimage

    grey = picture @ (np.array(REC_601) / 255)
    return ndimage.gaussian_gradient_magnitude(grey, blur, mode="nearest")


def _moved(edges: Grey, shift: NDArray[np.float64]) -> Grey:
    """Moved down and right by `shift` pixels, linearly; edges are blurred already."""
    from scipy import ndimage

    return ndimage.shift(edges, shift, order=1, mode="nearest") if shift.any() else edges


def _agreement(first: Grey, second: Grey) -> float:
    """The correlation of both, without the rim that a shift may bring in from outside."""
    rim = int(FARTHEST)
    a, b = (each[rim:-rim, rim:-rim].ravel() for each in (first, second))
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / norm if norm > FLAT**2 else 0.0  # where only the rim shows anything
