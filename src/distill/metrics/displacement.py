"""How far one picture lies off another, tile by tile: whether a teacher or a student is displaced.

A teacher whose layers enlarge with the wrong corners moves everything by a few pixels, which its
pictures hide: an output looks right beside the photo. Tiles show it, since such a shift grows
from one side to the other.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from distill.core.filters import luma

FLAT = 0.02  # deviation of a tile's luma in [0, 1] below which there is nothing to compare
STEPS = 20  # parts of a pixel that are told apart


def displacement(a: Tensor, b: Tensor, tiles: int = 4) -> Tensor:
    """How far `a` lies off `b`, (N, tiles, tiles, 2) in pixels (down, right), of (N, 3, H, W).

    By the phase of both spectra (Kuglin and Hines 1975), under a Hann window, in steps of 1/20
    pixel (Guizar-Sicairos et al. 2008). NaN where one of the tiles is flat. A single tile may be
    off by a pixel or more where lines differ: take medians over pictures.
    """
    from skimage.registration import phase_cross_correlation  # heavy: SciPy comes with it

    height, width = (side // tiles for side in a.shape[-2:])
    window = torch.outer(
        torch.hann_window(height, periodic=False), torch.hann_window(width, periodic=False)
    )
    found = torch.full((len(a), tiles, tiles, 2), float("nan"))
    first, second = luma(a.float().cpu())[:, 0], luma(b.float().cpu())[:, 0]
    for n, row, column in np.ndindex(len(a), tiles, tiles):
        at = np.s_[n, row * height : (row + 1) * height, column * width : (column + 1) * width]
        here, there = first[at], second[at]
        if min(here.std(), there.std()) < FLAT:
            continue
        here, there = ((tile - tile.mean()) * window for tile in (here, there))
        shift, _, _ = phase_cross_correlation(
            here.numpy(), there.numpy(), upsample_factor=STEPS, normalization="phase"
        )
        found[n, row, column] = torch.from_numpy(np.asarray(shift))
    return found


def typical(found: Tensor) -> Tensor:
    """The median over pictures, (tiles, tiles, 2), of what `displacement` gives; NaN without any.

    Of an even number the lower one of the two in the middle.
    """
    return found.nanmedian(0).values
