"""The guided filter of the page, by NumPy and SciPy."""

import numpy as np
from scipy.ndimage import map_coordinates, uniform_filter

LUMA = np.array([0.299, 0.587, 0.114])


def guided(photo: np.ndarray, seen: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """He and Sun's fast guided filter by luma, (H, W, 3) in levels: of a network's input and output
    (1, 3, h, w), radius 2, eps 1e-3, the functions bilinear between pixels. A pixel's residual is
    added by the share of the window's variance that they leave (of all colours, + one level²)."""
    grey = np.tensordot(LUMA, seen[0], 1)
    output = np.round(255 * drawn[0].clip(0, 1))
    mean = lambda x: uniform_filter(x.astype(float), 5, mode="nearest")  # noqa: E731
    variance = mean(grey**2) - mean(grey) ** 2
    height, width = photo.shape[:2]
    rows = (np.arange(height) + 0.5) * grey.shape[0] / height - 0.5
    columns = (np.arange(width) + 0.5) * grey.shape[1] / width - 0.5
    at = np.meshgrid(rows, columns, indexing="ij")
    fits = []
    for colour in output:
        slope = (mean(grey * colour) - mean(grey) * mean(colour)) / (variance + 1e-3)
        fits.append((slope, mean(colour) - slope * mean(grey), mean(colour**2) - mean(colour) ** 2))
    slopes, offsets, power = (np.stack(each) for each in zip(*fits, strict=True))
    rest = 1 - (slopes**2).sum(0) * (variance + 1e-3) / (power.sum(0) + 1)
    offsets += rest * (output - (slopes * grey + offsets))
    made = np.empty(photo.shape)
    for colour in range(3):
        slope, offset = (
            map_coordinates(x[colour], at, order=1, mode="nearest") for x in (slopes, offsets)
        )
        made[..., colour] = slope * (photo @ LUMA / 255) + offset
    return made.clip(0, 255)
