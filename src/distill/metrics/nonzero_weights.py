"""Shares of nonzero, dead and subnormal weights, of a network whose BatchNorm is folded."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

ALIVE = 1e-3  # of the layer's largest weight


class WeightShares(NamedTuple):
    """Of all convolutions' weights or output channels, in [0, 1].

    `nonzero` weights are at least 1e-3 of their layer's largest. Every weight of a `dead` channel
    is below. `subnormal` ones are not zero but below float32's 1.18e-38; arithmetic with them is up
    to 100 times slower.
    """

    nonzero: float
    dead: float
    subnormal: float


def weight_shares(network: nn.Module) -> WeightShares:
    """The shares of a network with at least one convolution."""
    nonzero, dead, subnormal = list[Tensor](), list[Tensor](), list[Tensor]()
    for module in network.modules():
        if not isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
            continue
        weight = module.weight.detach()
        if isinstance(module, nn.ConvTranspose2d):  # it lies as (inputs, outputs of a group, …)
            grouped = weight.unflatten(0, (module.groups, -1))
            weight = grouped.transpose(1, 2).flatten(0, 1)
        sizes = weight.flatten(1).abs()  # (output channels, inputs · kernel)
        largest = sizes.max()
        nonzero.append(((sizes >= ALIVE * largest) & (largest > 0)).flatten())
        dead.append(sizes.amax(1) < ALIVE * largest.clamp_min(1e-30))
        subnormal.append(((sizes > 0) & (sizes < torch.finfo(torch.float32).tiny)).flatten())
    return WeightShares(
        *(float(torch.cat(each).float().mean()) for each in (nonzero, dead, subnormal))
    )
