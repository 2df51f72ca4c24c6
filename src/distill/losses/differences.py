"""Difference loss: L1 between the steps from pixel to pixel of student and teacher.

The anisotropic total variation (Rudin, Osher and Fatemi, 1992) of their difference. It sees what
Sobel's kernels, which step over a pixel, cannot: patterns that alternate from one to the next.
"""

from torch import Tensor

from distill.losses.term import LossTerm


class Differences(LossTerm):
    """Mean |Δstudent − Δtarget| over both directions; pictures (N, C, H, W), sides of 2 or more."""

    by_pixel = True

    def forward(self, student: Tensor, target: Tensor) -> Tensor:
        error = student - target
        across = (error[..., 1:] - error[..., :-1]).abs().mean()
        down = (error[..., 1:, :] - error[..., :-1, :]).abs().mean()
        return (across + down) / 2
