"""Building blocks of decoders; all of them export into the strict operator set."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


def conv_norm_relu(inputs: int, outputs: int, kernel: int, groups: int = 1) -> nn.Sequential:
    """Convolution (same size, no bias), BatchNorm, ReLU."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


def separable(inputs: int, outputs: int, kernel: int) -> nn.Sequential:
    """Depthwise then pointwise convolution, each with BatchNorm and ReLU."""
    return nn.Sequential(
        conv_norm_relu(inputs, inputs, kernel, groups=inputs), conv_norm_relu(inputs, outputs, 1)
    )


def double(x: Tensor) -> Tensor:
    """Nearest-neighbour ×2: the one upsampling that every lens tool reads."""
    return F.interpolate(x, scale_factor=2.0, mode="nearest")
