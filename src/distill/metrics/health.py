"""How much of a network is alive. All functions take a network with BatchNorm folded."""

from __future__ import annotations

import torch
from torch import Tensor, nn

ALIVE = 1e-3  # of the layer's largest weight
SUBNORMAL = 1.1754944e-38  # below it float32 is subnormal, and arithmetic up to 100 times slower


def living_weight_share(network: nn.Module) -> float:
    """Share of convolution weights that are at least 1e-3 of their layer's largest."""
    weights = _weights(network)
    alive = sum(int((w.abs() >= ALIVE * w.abs().max()).sum()) for w in weights if w.abs().max() > 0)
    return alive / sum(w.numel() for w in weights)


def dead_channel_share(network: nn.Module) -> float:
    """Share of output channels whose every weight is below 1e-3 of the layer's largest."""
    dead = [
        w.flatten(1).abs().amax(1) < ALIVE * w.abs().max().clamp_min(1e-30)
        for w in _weights(network)
    ]
    return float(torch.cat(dead).float().mean())


def subnormal_share(network: nn.Module) -> float:
    """Share of convolution weights that are subnormal (not zero, below 1.18e-38)."""
    weights = _weights(network)
    count = sum(int(((w != 0) & (w.abs() < SUBNORMAL)).sum()) for w in weights)
    return count / sum(w.numel() for w in weights)


def _weights(network: nn.Module) -> list[Tensor]:
    return [m.weight.detach() for m in network.modules() if isinstance(m, nn.Conv2d)]
