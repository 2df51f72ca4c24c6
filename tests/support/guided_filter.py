"""The guided filter of the page, by NumPy and SciPy."""

import numpy as np
from scipy.ndimage import map_coordinates, uniform_filter

LUMA = np.array([0.299, 0.587, 0.114])


def guided(photo: np.ndarray, seen: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """He and Sun's fast guided filter by luma, (H, W, 3) in levels: of a network's input and output
    (1, 3, h, w), radius 2, eps 1e-3, the functions bilinear between pixels."""
    grey = np.tensordot(LUMA, seen[0], 1)
    output = np.round(255 * drawn[0].clip(0, 1))
    mean = lambda x: uniform_filter(x.astype(float), 5, mode="nearest")  # noqa: E731
    variance = mean(grey**2) - mean(grey) ** 2
    height, width = photo.shape[:2]
    rows = (np.arange(height) + 0.5) * grey.shape[0] / height - 0.5
    columns = (np.arange(width) + 0.5) * grey.shape[1] / width - 0.5
    at = np.meshgrid(rows, columns, indexing="ij")
    made = np.empty(photo.shape)
    for colour in range(3):
        slope = (mean(grey * output[colour]) - mean(grey) * mean(output[colour])) / (
            variance + 1e-3
        )
        offset = mean(output[colour]) - slope * mean(grey)
        slopes, offsets = (map_coordinates(x, at, order=1, mode="nearest") for x in (slope, offset))
        made[..., colour] = slopes * (photo @ LUMA / 255) + offsets
    return made.clip(0, 255)
