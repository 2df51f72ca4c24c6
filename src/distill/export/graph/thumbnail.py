"""The thumbnail of a whole picture, made by the graph that reads it."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper

from distill.models.students.global_statistics import THUMBNAIL


def add_thumbnail(model: onnx.ModelProto) -> None:
    """Have the graph compute its second input from the first, as `thumbnail_of` does.

    Tracing knows no antialiased interpolation.
    """
    graph = model.graph
    photo, thumbnail = (value.name for value in graph.input)
    del graph.input[1]
    sides = helper.make_tensor("sides", TensorProto.INT64, [2], [THUMBNAIL, THUMBNAIL])
    constant = helper.make_node("Constant", [], ["thumbnail_sides"], value=sides)
    resize = helper.make_node(
        "Resize",
        [photo, "", "", "thumbnail_sides"],
        [thumbnail],
        name="thumbnail",
        mode="linear",
        antialias=1,
        exclude_outside=1,  # at the border as PyTorch and Pillow: what is there, weighted again
        axes=[2, 3],
        coordinate_transformation_mode="half_pixel",
    )
    graph.node.insert(0, resize)
    graph.node.insert(0, constant)
