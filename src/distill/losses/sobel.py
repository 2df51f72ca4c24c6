"""Edge loss: L1 between Sobel gradients (the paper's §4.2)."""

from __future__ import annotations

from kornia.filters import spatial_gradient
from torch import Tensor, nn


def sobel_loss(student: Tensor, target: Tensor) -> Tensor:
    """Mean |∇student − ∇target| over both directions; pictures (N, C, H, W) of any equal shape."""
    return (spatial_gradient(student) - spatial_gradient(target)).abs().mean()


class Sobel(nn.Module):
    """`sobel_loss` as a module."""

    def forward(self, student: Tensor, target: Tensor) -> Tensor:
        return sobel_loss(student, target)
