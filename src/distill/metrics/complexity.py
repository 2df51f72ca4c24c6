"""What a network costs: MACs on the exported graph, parameters, operators.

The gate counts on the exported graph, because that is what a phone runs. thop, the paper's tool,
counts BatchNorm that the export folds away, so it reads 144.2 M for nnconv's 125.3 M.
"""

import contextlib
import io
from copy import deepcopy
from math import prod

import numpy as np
import onnx
import torch
from onnx import shape_inference
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from distill.core.errors import DistillError

Size = int | tuple[int, int]  # a side, or height and width


def graph_macs(model: onnx.ModelProto, published: bool = False) -> int:
    """Multiply-accumulates of all convolutions and matrix products, for the graph's static shapes.

    A transposed convolution is counted at its input's size, as the arithmetic is done. Papers on
    small GANs count it with thop, at its output's: with `published` so does this, and a
    ResNet of 9 blocks has the 56.8 G of GAN Compression (Li et al. 2020, table 1), not 49.55.
    Raises DistillError where a shape is unknown: a dynamic graph has no single number.
    """
    shapes, total = tensor_shapes(model), 0
    for node in model.graph.node:
        if node.op_type == "Conv":
            weight = shapes[node.input[1]]
            total += prod(_static(shapes, node.output[0])) * prod(weight[1:])
        elif node.op_type == "ConvTranspose":
            weight, source = shapes[node.input[1]], _static(shapes, node.input[0])
            places = _static(shapes, node.output[0]) if published else source
            total += prod(source[:2]) * prod(places[2:]) * prod(weight[1:])
        elif node.op_type in ("MatMul", "Gemm"):
            inner = _static(shapes, node.input[0])[-1]
            total += prod(_static(shapes, node.output[0])) * inner
    return total


def module_macs(network: nn.Module, size: Size, channels: int = 3) -> int | None:
    """MACs of a PyTorch network's convolutions for one picture; None if it has none."""
    picture = torch.zeros(1, channels, *np.broadcast_to(size, 2))
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        network(picture)
    return counter.get_total_flops() // 2 or None


def thop_macs(network: nn.Module, size: Size) -> int:
    """What thop says for one RGB picture, for comparison with the paper's figures."""
    import thop

    with contextlib.redirect_stdout(io.StringIO()):
        macs, _ = thop.profile(
            deepcopy(network).eval(),
            inputs=(torch.zeros(1, 3, *np.broadcast_to(size, 2)),),
            verbose=False,
        )
    return int(macs)


def parameters(network: nn.Module) -> int:
    """Number of trained values."""
    return sum(p.numel() for p in network.parameters())


def graph_parameters(model: onnx.ModelProto) -> int:
    """Number of values in a graph's weights (tensors of more than one value)."""
    sizes = (prod(tensor.dims) for tensor in model.graph.initializer)
    return sum(size for size in sizes if size > 1)


def operators(model: onnx.ModelProto) -> list[str]:
    """The kinds of operators in a graph, sorted."""
    return sorted({node.op_type for node in model.graph.node})


def tensor_shapes(model: onnx.ModelProto) -> dict[str, list[int]]:
    """Every tensor's shape by name, weights included; a dimension that is not known is 0."""
    graph = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
    values = [*graph.input, *graph.value_info, *graph.output]
    types = {v.name: v.type.tensor_type for v in values}
    known = {n: [d.dim_value for d in t.shape.dim] for n, t in types.items()}
    shapes = {n: s if types[n].HasField("shape") else [0] for n, s in known.items()}
    return shapes | {tensor.name: list(tensor.dims) for tensor in graph.initializer}


def _static(shapes: dict[str, list[int]], name: str) -> list[int]:
    shape = shapes.get(name, [0])
    if not all(shape):
        raise DistillError(
            f"MACs: the shape of {name} is not static; another exporter.opset may have it"
        )
    return shape
