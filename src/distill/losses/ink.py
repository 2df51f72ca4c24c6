"""Ink loss: L1 that counts where the teacher drew a thin dark line.

Lines cover few pixels and their place is uncertain by some of them: under a plain L1 the safest
answer is the median, paper. The weight is the black-hat of the target's luma (Serra 1982), which is
the depth of lines up to 4 pixels across and 0 at edges and in flat areas.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from distill.core.arrays import over_white
from distill.core.black_hat import black_hat, luma
from distill.losses.term import LossTerm


def line_weights(target: Tensor) -> Tensor:
    """Depth of the nearest line within a pixel, (N, 1, H, W) in [0, 1], of RGB (N, 3, H, W).

    Widened by one pixel (3×3 maximum), so that ink beside the line costs as much as a lack of it.
    """
    return F.max_pool2d(black_hat(luma(target)), 3, stride=1, padding=1)


class InkWeighted(LossTerm):
    """Mean over all values of weight × |student − target|; RGBA is put over white first."""

    def forward(self, student: Tensor, target: Tensor) -> Tensor:
        target = over_white(target)
        with torch.no_grad():
            weights = line_weights(target)
        return (weights * (over_white(student) - target).abs()).mean()
