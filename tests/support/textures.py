"""Smooth random pictures, and the same moved by any part of a pixel."""

import numpy as np
from numpy.typing import NDArray

SIDE = 256


def texture(seed: int, down: float = 0.0, right: float = 0.0) -> NDArray[np.uint8]:
    """(SIDE, SIDE, 3): blobs some 10 pixels wide, moved as a Fourier shift does, round the border.

    Exact for any fraction of a pixel, since nothing finer than 8 pixels is in it.
    """
    rng = np.random.default_rng(seed)
    rows, columns = np.fft.fftfreq(SIDE)[:, None], np.fft.rfftfreq(SIDE)[None]
    spectrum = np.fft.rfft2(rng.normal(size=(SIDE, SIDE))) * (np.hypot(rows, columns) < 1 / 8)
    moved = np.exp(-2j * np.pi * (rows * down + columns * right))
    grey = np.fft.irfft2(spectrum * moved, s=(SIDE, SIDE))
    return np.repeat((128 + 40 * grey / grey.std()).clip(0, 255).round()[..., None], 3, 2).astype(
        np.uint8
    )
