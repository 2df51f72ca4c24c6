"""Flicker: how much a network's output changes where its input hardly does, in levels of 255.

Three inputs that a camera gives: noise, a step of one pixel, and a slow pan. What moved is moved
back before it is compared. A network that leaves the photo as it is has 1.6 levels under noise
(σ·√(2/π)), none under the step, and under the pan what resampling does to its lines; so compare a
student with its teacher and with the photo.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from distill.core.errors import DistillError
from distill.core.images import moved

KINDS = ("noise", "1 px", "pan")
SIGMA = 2 / 255  # of the noise, on every channel of every pixel
STEPS = ((0, 1), (1, 0))  # pixels down and right
FRAMES, PACE = 8, 0.25  # of the pan: how many, and pixels to the right from one to the next
MARGIN = 16  # pixels at each border that are not looked at: there the photo was continued


@torch.inference_mode()
def flicker(network: Callable[[Tensor], Tensor], photos: Tensor, seed: int = 0) -> Tensor:
    """Mean |change| of every photo's output, (N, 3) in the order of KINDS, levels of 255.

    `photos` are (N, 3, H, W) in [0, 1], the output (N, 3, H, W) in [0, 1]. Photo i has the noise
    of the seed and its place i. Raises DistillError for photos with nothing inside the margin.
    """
    height, width = photos.shape[-2:]
    if min(height, width) <= 2 * MARGIN:
        raise DistillError(
            f"flicker is measured {MARGIN} pixels inside the border, and these photos are of "
            f"{height}×{width}; take larger ones"
        )
    still = network(photos)
    noisy = (photos + SIGMA * _noise(photos, seed)).clamp(0, 1)
    steps = [_change(moved(network(moved(photos, *by)), *(-x for x in by)), still) for by in STEPS]
    pan = []
    before = still
    for frame in range(1, FRAMES):
        by = frame * PACE
        now = moved(network(moved(photos, 0, by)), 0, -by)
        pan.append(_change(now, before))
        before = now
    changes = _change(network(noisy), still), torch.stack(steps).mean(0), torch.stack(pan).mean(0)
    return torch.stack(changes, 1)


def _noise(photos: Tensor, seed: int) -> Tensor:
    """Standard normal, the same on every device and for a photo in whatever batch."""
    made = [
        torch.randn(photos.shape[1:], generator=torch.Generator().manual_seed(seed + i))
        for i in range(len(photos))
    ]
    return torch.stack(made).to(photos)


def _change(a: Tensor, b: Tensor) -> Tensor:
    inner = (a - b)[..., MARGIN:-MARGIN, MARGIN:-MARGIN]
    return 255 * inner.abs().flatten(1).mean(1)
