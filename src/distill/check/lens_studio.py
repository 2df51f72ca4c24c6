"""What to type into Lens Studio's import dialogue, as far as a file tells.

Lens Studio gives a network v·scale + bias for a pixel's value v from 0 to 255, and takes its output
back in the same way (Snap, Lens Studio documentation, "ML Component Overview", read 2026-11).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from distill.check.onnx_graph import Graph, Node
from distill.core.onnx_files import ABOUT

Range = tuple[float, float]
Number = float | np.ndarray
FULL: Range = (0.0, 255.0)
UNIT: Range = (0.0, 1.0)
ENDS: dict[str, Range] = {"Sigmoid": UNIT, "HardSigmoid": UNIT, "Softmax": UNIT, "Tanh": (-1, 1)}
PASSING = ("Identity", "Cast", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Slice")
QUANTISED = ("QuantizeLinear", "DequantizeLinear")
AFFINE = ("Mul", "Div", "Add", "Sub")
OURS = ("photo", "stylized")


@dataclass(frozen=True)
class Side:
    """An input or output: its values for black and white (None: the file does not say)."""

    name: str
    dims: str
    range: Range | None

    @property
    def input_scaling(self) -> tuple[float, float] | None:
        """Scale and bias from 0 … 255 to the network's values, for an input."""
        return ((self.range[1] - self.range[0]) / 255, self.range[0]) if self.range else None

    @property
    def output_scaling(self) -> tuple[float, float] | None:
        """Scale and bias from the network's values to 0 … 255, for an output."""
        if self.range is None or self.range[0] == self.range[1]:
            return None
        scale = 255 / (self.range[1] - self.range[0])
        return scale, -self.range[0] * scale + 0.0  # no -0


@dataclass(frozen=True)
class ImportSettings:
    """`channels` is the order, None where the file does not say; `ours` if distill exported it."""

    input: Side
    output: Side
    channels: str | None
    ours: bool


def settings(graph: Graph) -> ImportSettings | None:
    """For networks from one picture to one; None for others."""
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        return None
    photo, output = graph.inputs[0], graph.outputs[0]
    if photo.shape is None or len(photo.shape) != 4:
        return None
    input_scale, output_scale = input_range(graph), output_range(graph)
    # The last operators of a head do not show its range.
    output_scale = output_scale or (UNIT if ABOUT in graph.about else None)
    ours = (photo.name, output.name) == OURS and output_scale == UNIT and input_scale is None
    return ImportSettings(
        Side(photo.name, photo.dims, UNIT if ours else input_scale),
        Side(output.name, output.dims, output_scale),
        "RGB" if ours else None,
        ours,
    )


def output_range(graph: Graph) -> Range | None:
    """Smallest and largest value that the last operators allow; None where they allow any."""
    makers = {name: node for node in graph.nodes for name in node.outputs}
    return _range(graph, makers, graph.outputs[0].name)


def _range(graph: Graph, makers: dict[str, Node], name: str) -> Range | None:
    node = makers.pop(name, None)  # each is asked once: damaged graphs have circles
    if node is None:
        return None
    if node.operator in ENDS:
        return ENDS[node.operator]
    if node.operator == "Clip":  # both limits are attributes up to opset 10, inputs since
        limits = [graph.value(name) for name in node.inputs[1:3] if name]
        bounds = [v.item() for v in limits if v is not None and v.size == 1]
        bounds = bounds or [node.attributes[k] for k in ("min", "max") if k in node.attributes]
        return (float(bounds[0]), float(bounds[1])) if len(bounds) == 2 else None
    if node.operator in (*PASSING, *QUANTISED):
        return _range(graph, makers, node.inputs[0]) if node.inputs else None
    if node.operator not in AFFINE or len(node.inputs) != 2:
        return None
    for index in (0, 1):
        inner = _range(graph, makers, node.inputs[index])
        constant = graph.value(node.inputs[1 - index])
        if inner and constant is not None and constant.size == 1:
            number = float(constant.item())
            bounds = [float(_affine(node.operator, end, number, index)) for end in inner]
            return (min(bounds), max(bounds)) if np.isfinite(bounds).all() else None
    return None


def _affine(operator: str, value: Number, constant: Number, index: int) -> Any:
    """The operator with the value as its first (index 0) or second operand."""
    a, b = (value, constant) if index == 0 else (constant, value)
    by = {"Mul": np.multiply, "Add": np.add, "Sub": np.subtract, "Div": np.divide}
    with np.errstate(all="ignore"):
        return by[operator](a, b)


def input_range(graph: Graph) -> Range | None:
    """0 … 255 or 0 … 1 where the network begins with its own normalisation, else None."""
    name, steps = graph.inputs[0].name, 0
    low, high = np.zeros(1), np.ones(1)
    while steps < len(graph.nodes) and (node := _only_affine(graph, name)):
        index = list(node.inputs).index(name)
        constant = np.asarray(graph.value(node.inputs[1 - index]), np.float64)
        low, high = (_affine(node.operator, end, constant, index) for end in (low, high))
        name, steps = node.outputs[0], steps + 1
    if not steps:
        return None
    for candidate in (UNIT, FULL):
        reach = np.abs(low + (high - low) * candidate[1]).max()
        if 0.5 <= reach <= 5:  # what networks compute with, whether [0, 1], [-1, 1] or ImageNet's
            return candidate
    return None


def _only_affine(graph: Graph, name: str) -> Node | None:
    """The one node that takes a tensor, if it shifts or scales it by constants."""
    readers = [node for node in graph.nodes if name in node.inputs]
    if len(readers) != 1 or readers[0].operator not in AFFINE or len(readers[0].inputs) != 2:
        return None
    other = [each for each in readers[0].inputs if each != name]
    constant = other and graph.value(other[0]) is not None
    return readers[0] if constant and readers[0].outputs else None
