"""Tiny ONNX networks whose output is known at every pixel."""

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper

SIDE = 64


@dataclass
class Network:
    """A model that can be written to a file."""

    model: onnx.ModelProto

    def save(self, path: str) -> None:
        onnx.save(self.model, path)


def negative(channels: int = 3, reshaped: bool = False, side: int = SIDE) -> Network:
    """1 - x; a fourth channel is opaque where the picture is black, see-through where white.

    `reshaped` writes the size into the graph itself, so that no other one goes.
    """
    weights = np.zeros((channels, 3, 1, 1), np.float32)
    for colour in range(3):
        weights[colour, colour] = -1
    if channels == 4:
        weights[3, :, 0, 0] = -1 / 3
    tensors = [
        helper.make_tensor("w", TensorProto.FLOAT, weights.shape, weights.ravel()),
        helper.make_tensor("b", TensorProto.FLOAT, [channels], np.ones(channels, np.float32)),
        helper.make_tensor("shape", TensorProto.INT64, [4], [1, channels, side, side]),
    ]
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["flat" if reshaped else "y"])]
    if reshaped:
        nodes.append(helper.make_node("Reshape", ["flat", "shape"], ["y"]))
    graph = helper.make_graph(
        nodes,
        "negative",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, side, side])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, channels, side, side])],
        tensors if reshaped else tensors[:2],
    )
    opset = [helper.make_opsetid("", 13)]
    return Network(helper.make_model(graph, opset_imports=opset, ir_version=8))
