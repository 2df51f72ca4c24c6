"""Building blocks of decoders; all of them export into the strict operator set."""

import torch
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


def smoothing(channels: int) -> nn.Conv2d:
    """A depthwise 3×3 that begins as 1 2 1 both ways: `double` and it are bilinear ×2 inside."""
    conv = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
    line = torch.tensor([0.25, 0.5, 0.25])
    conv.weight = nn.Parameter(torch.outer(line, line).repeat(channels, 1, 1, 1))
    return conv


class AddedSeparable(nn.Module):
    """x plus a depthwise convolution (BatchNorm), a pointwise one, BatchNorm and ReLU of it.

    What is added starts small: an untrained block is close to the identity.
    """

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        self.added = nn.Sequential(
            nn.Conv2d(channels, channels, kernel, padding=kernel // 2, groups=channels, bias=False),
            nn.BatchNorm2d(channels),
            nn.Conv2d(channels, channels, 1, bias=False),
            small(nn.BatchNorm2d(channels)),
            nn.ReLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.added(x)


def conv_norm(inputs: int, outputs: int) -> nn.Sequential:
    """1×1 convolution and BatchNorm, to be added to others before a ReLU."""
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs))


def small(norm: nn.BatchNorm2d, scale: float = 0.2) -> nn.BatchNorm2d:
    """A BatchNorm whose output starts at `scale`: what it feeds is felt little at first."""
    nn.init.constant_(norm.weight, scale)
    return norm
