"""How much of a network is alive. All functions take a network with BatchNorm folded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    import onnx

ALIVE = 1e-3  # of the layer's largest weight
SUBNORMAL = 1.1754944e-38  # below it float32 is subnormal, and arithmetic up to 100 times slower


def living_weight_share(network: nn.Module) -> float:
    """Share of convolution weights that are at least 1e-3 of their layer's largest."""
    return _living_share(_weights(network))


def graph_living_weight_share(model: onnx.ModelProto) -> float | None:
    """The same of an ONNX graph's convolutions; None where it has none with weights of its own."""
    from onnx import numpy_helper  # training watches weights too, and needs no ONNX for it

    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    convolutions = (n for n in model.graph.node if n.op_type in ("Conv", "ConvTranspose"))
    found = [tensors[node.input[1]] for node in convolutions if node.input[1] in tensors]
    weights = [torch.from_numpy(numpy_helper.to_array(t).astype("float32")) for t in found]
    return _living_share(weights) if weights else None


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


def _living_share(weights: Sequence[Tensor]) -> float:
    alive = sum(int((w.abs() >= ALIVE * w.abs().max()).sum()) for w in weights if w.abs().max() > 0)
    return alive / sum(w.numel() for w in weights)


def _weights(network: nn.Module) -> list[Tensor]:
    """Every convolution's weights, (output channels, …)."""
    plain = (m for m in network.modules() if isinstance(m, nn.Conv2d | nn.ConvTranspose2d))
    return [
        _transposed(m) if isinstance(m, nn.ConvTranspose2d) else m.weight.detach() for m in plain
    ]


def _transposed(module: nn.ConvTranspose2d) -> Tensor:
    """Its weights lie as (inputs, outputs of one group, …): put the outputs first."""
    grouped = module.weight.detach().unflatten(0, (module.groups, -1))
    return grouped.transpose(1, 2).flatten(0, 1)
