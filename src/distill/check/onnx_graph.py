"""An ONNX file as the rules see it: nodes of all levels, constants, shapes, where the bytes lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper

Shape = tuple[int | None, ...]
STANDARD = ("", "ai.onnx")


@dataclass(frozen=True)
class Node:
    """One operator; `attributes` hold plain values, text as str."""

    name: str
    operator: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]

    def get(self, name: str, default: Any) -> Any:
        return self.attributes.get(name, default)


@dataclass(frozen=True)
class Tensor:
    """An input or output of the network; a dimension of None is not fixed, `shape` None unknown."""

    name: str
    shape: Shape | None
    dims: str

    @property
    def fixed(self) -> bool:
        return self.shape is not None and None not in self.shape


@dataclass(frozen=True)
class Graph:
    """`size` is in bytes, `external` files included; `shapes` holds what could be inferred."""

    path: Path
    size: int
    external: tuple[str, ...]
    opset: int
    nodes: tuple[Node, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    constants: Mapping[str, TensorProto]
    shapes: Mapping[str, Shape]

    def of(self, *operators: str) -> list[Node]:
        """The nodes of ONNX's own operators of these names."""
        return [n for n in self.nodes if n.operator in operators and n.domain in STANDARD]

    def shape(self, name: str) -> Shape | None:
        if name in self.constants:
            return tuple(self.constants[name].dims)
        return self.shapes.get(name)

    def weight_shape(self, node: Node) -> Shape | None:
        """Of a convolution's weight, its second input; None where that is not known."""
        return self.shape(node.inputs[1]) if len(node.inputs) > 1 else None

    def value(self, name: str) -> np.ndarray | None:
        """A constant's values; None for what is computed, or damaged, or in another file."""
        tensor = self.constants.get(name)
        if tensor is None or tensor.data_location == TensorProto.EXTERNAL:
            return None
        try:
            return numpy_helper.to_array(tensor)
        except (KeyError, TypeError, ValueError):  # no such type, or bytes that do not fit it
            return None
