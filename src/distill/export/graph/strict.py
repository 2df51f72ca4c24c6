"""Transposed convolutions of 2×2 with stride 2, in the operators of the profile `strict`."""

from __future__ import annotations

from copy import deepcopy
from typing import TypeGuard

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Patches(nn.Module):
    """What nn.ConvTranspose2d(…, 2, 2) computes, from 1×1 convolutions, nearest ×2 and two masks.

    Pixel (r, c) of a patch is W₀₀ + c (W₀₁ − W₀₀) + r (W₁₀ − W₀₀) + rc (W₁₁ − W₁₀ − W₀₁ + W₀₀)
    applied to the pixel below it: four 1×1 convolutions where the picture is small, doubled, and
    multiplied by a row and a column of zeros and ones. The same function but for rounding. In a
    traced graph the masks have the length that they were traced with.
    """

    def __init__(self, layer: nn.ConvTranspose2d) -> None:
        super().__init__()
        weights = layer.weight.detach().transpose(0, 1)
        a, b, c, d = (weights[..., i, j] for i in (0, 1) for j in (0, 1))
        self.base, self.right = _pointwise(a, layer.bias), _pointwise(b - a)
        self.below, self.both = _pointwise(c - a), _pointwise(d - c - b + a)

    def forward(self, x: Tensor) -> Tensor:
        # 0, 1, 0, 1 …, constants of the graph, since NumPy is not traced.
        patch = np.array([0.0, 1.0], np.float32)
        row, column = (torch.from_numpy(np.tile(patch, int(n))).to(x) for n in x.shape[-2:])
        row = row.view(1, 1, -1, 1)
        below = _double(self.below(x)) + column * _double(self.both(x))
        return _double(self.base(x)) + column * _double(self.right(x)) + row * below


def in_strict_operators(network: nn.Module) -> nn.Module:
    """A copy without transposed convolutions of 2×2 with stride 2; others stay as they are."""
    copy = deepcopy(network)
    for module in list(copy.modules()):
        for name, child in list(module.named_children()):
            if doubles(child):
                setattr(module, name, Patches(child))
    return copy.eval()


def doubles(layer: nn.Module) -> TypeGuard[nn.ConvTranspose2d]:
    """Whether it is a transposed convolution in which every input pixel becomes a 2×2 patch."""
    if not isinstance(layer, nn.ConvTranspose2d) or any((*layer.padding, *layer.output_padding)):
        return False
    two = layer.kernel_size == layer.stride == (2, 2)
    return two and layer.dilation == (1, 1) and layer.groups == 1


def _pointwise(weight: Tensor, bias: Tensor | None = None) -> nn.Conv2d:
    made = nn.Conv2d(weight.shape[1], weight.shape[0], 1, bias=bias is not None)
    with torch.no_grad():
        made.weight.copy_(weight[..., None, None])
        if bias is not None:
            assert made.bias is not None
            made.bias.copy_(bias)
    return made


def _double(x: Tensor) -> Tensor:
    return F.interpolate(x, scale_factor=2.0, mode="nearest")
