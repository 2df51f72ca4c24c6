"""Edge loss: L1 between Sobel gradients (the paper's §4.2)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from distill.losses.term import LossTerm

_ACROSS = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]]) / 8
_KERNELS = torch.stack([_ACROSS, _ACROSS.T])[:, None]  # d/dx, d/dy


class Sobel(LossTerm):
    """Mean |∇student − ∇target| over both directions; pictures (N, C, H, W) of any equal shape.

    Edges are taken once, of the difference, and channel by channel: the same number as from
    kornia's `spatial_gradient` of each picture, whose 3-D convolution took half of a training step.
    """

    def forward(self, student: Tensor, target: Tensor) -> Tensor:
        channels = student.shape[1]
        padded = F.pad(student - target, (1, 1, 1, 1), mode="replicate")
        kernels = _KERNELS.to(padded).repeat(channels, 1, 1, 1)
        return F.conv2d(padded, kernels, groups=channels).abs().mean()
