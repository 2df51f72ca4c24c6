"""The checkerboard that upsampling leaves: how much of a picture alternates from pixel to pixel."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

BLOCK = 16  # pixels over which a pattern must go on to count


def grid(pictures: Tensor) -> Tensor:
    """Amplitude (N,) of patterns with a period of two pixels, of (N, C, H, W), sides of 18 or more.

    ±a in columns, in rows or as a checkerboard gives a. Second differences are multiplied by
    (−1)^position and averaged over blocks: a pattern adds up, texture and noise cancel out. An edge
    leaves a little, so that a sharp picture without any pattern has more than a soft one: compare
    a student with its teacher.
    """
    squares = torch.zeros(len(pictures), device=pictures.device)
    for sides in ((3,), (2,), (2, 3)):
        wave = pictures.float()
        for side in sides:
            wave = _demodulated(wave, side)
        squares += F.avg_pool2d(wave, BLOCK).square().mean((1, 2, 3))
    return squares.sqrt()


def _demodulated(wave: Tensor, side: int) -> Tensor:
    """(−x[i−1] + 2·x[i] − x[i+1]) / 4 · (−1)^i along one side, two shorter."""
    size = wave.shape[side] - 2
    before, here, after = (wave.narrow(side, start, size) for start in range(3))
    signs = torch.ones(size, device=wave.device)
    signs[::2] = -1
    shape = [size if d == side else 1 for d in range(wave.ndim)]
    return (2 * here - before - after) / 4 * signs.view(shape)
