"""Small ONNX graphs, built from their nodes, and one that no device minds: a clean lens model."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CHANNELS, SIZE = 4, 8
FLOAT = TensorProto.FLOAT


def weight(name: str, *shape: int, fill: float = 0.25) -> TensorProto:
    return numpy_helper.from_array(np.full(shape, fill, np.float32), name)


def picture(name: str, *dims: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, FLOAT, dims or (1, CHANNELS, SIZE, SIZE))


def build(
    nodes: Sequence[onnx.NodeProto],
    weights: Sequence[TensorProto] = (),
    opset: int = 9,
    inputs: Sequence[onnx.ValueInfoProto] = (),
    outputs: Sequence[onnx.ValueInfoProto] = (),
    domains: Sequence[str] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "test",
        list(inputs) or [picture("x")],
        list(outputs) or [picture("y")],
        list(weights),
    )
    versions = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, opset_imports=versions, ir_version=7)


def save(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def clean(opset: int = 9) -> onnx.ModelProto:
    """What a released lens model is made of, and nothing that any profile minds."""
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], "conv", kernel_shape=[1, 1]),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("Conv", ["r", "d"], ["e"], "depthwise", group=CHANNELS, pads=[1] * 4),
        helper.make_node("Add", ["r", "e"], ["a"], "add"),
        helper.make_node("Sigmoid", ["a"], ["y"], "sigmoid"),
    ]
    weights = [
        weight("w", CHANNELS, CHANNELS, 1, 1), weight("b", CHANNELS),
        weight("d", CHANNELS, 1, 3, 3),
    ]  # fmt: skip
    return build(nodes, weights, opset, outputs=[picture("y")])
