"""Small networks in ONNX files that stand for a saliency network."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def brightness(path: Path, sides=("h", "w"), scale=1.0, offset=0.0, channels=3, outputs=("y", "z")):
    """A network with the outputs y, scale · (mean of the channels) + offset, and z, its input."""
    shape = ["n", channels, *sides]
    values = {"scale": np.float32(scale), "offset": np.float32(offset)}
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["mean"], axes=[1], keepdims=1),
        helper.make_node("Mul", ["mean", "scale"], ["scaled"]),
        helper.make_node("Add", ["scaled", "offset"], ["y"]),
        helper.make_node("Identity", ["x"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.array(v), k) for k, v in values.items()],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path
