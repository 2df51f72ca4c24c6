"""Shares of nonzero, dead and subnormal weights, of a network whose BatchNorm is folded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    import onnx

ALIVE = 1e-3  # of the layer's largest weight


def nonzero_weight_share(network: nn.Module) -> float:
    """Share of convolution weights that are at least 1e-3 of their layer's largest."""
    return _nonzero_share(_weights(network))


def graph_nonzero_weight_share(model: onnx.ModelProto) -> float | None:
    """The same of an ONNX graph's convolutions; None where it has none with weights of its own."""
    from onnx import numpy_helper  # training watches weights too, and needs no ONNX for it

    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    convolutions = (n for n in model.graph.node if n.op_type in ("Conv", "ConvTranspose"))
    kernels = [tensors[node.input[1]] for node in convolutions if node.input[1] in tensors]
    weights = [torch.from_numpy(numpy_helper.to_array(t).astype("float32")) for t in kernels]
    return _nonzero_share(weights) if weights else None


def dead_channel_share(network: nn.Module) -> float:
    """Share of output channels whose every weight is below 1e-3 of the layer's largest."""
    dead = [
        w.flatten(1).abs().amax(1) < ALIVE * w.abs().max().clamp_min(1e-30)
        for w in _weights(network)
    ]
    return float(torch.cat(dead).float().mean())


def subnormal_share(network: nn.Module) -> float:
    """Share of convolution weights that are subnormal (not zero, below float32's 1.18e-38).

    Arithmetic with them is up to 100 times slower.
    """
    weights, least = _weights(network), torch.finfo(torch.float32).tiny
    count = sum(int(((w != 0) & (w.abs() < least)).sum()) for w in weights)
    return count / sum(w.numel() for w in weights)


def _nonzero_share(weights: Sequence[Tensor]) -> float:
    alive = sum(int((w.abs() >= ALIVE * w.abs().max()).sum()) for w in weights if w.abs().max() > 0)
    return alive / sum(w.numel() for w in weights)


def _weights(network: nn.Module) -> list[Tensor]:
    """Every convolution's weights, (output channels, …)."""
    weights = []
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            weights.append(module.weight.detach())
        elif isinstance(module, nn.ConvTranspose2d):  # they lie as (inputs, outputs of a group, …)
            grouped = module.weight.detach().unflatten(0, (module.groups, -1))
            weights.append(grouped.transpose(1, 2).flatten(0, 1))
    return weights
