"""Any ONNX file as the rules see it: nodes of all levels, constants, shapes, where bytes lie."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, inliner, numpy_helper, shape_inference

from distill.core.errors import DistillError
from distill.core.onnx_files import external_files, graphs, read_graph

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
    kind: str = "FLOAT"  # of its values, by ONNX's names

    @property
    def fixed(self) -> bool:
        return self.shape is not None and None not in self.shape


@dataclass(frozen=True)
class Graph:
    """`size` is in bytes, `external` files included; `shapes` holds what could be inferred.

    `about` is what a file says of itself; those that are not ONNX have no opset, 0.
    """

    path: Path
    size: int
    external: tuple[str, ...]
    opset: int
    nodes: tuple[Node, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    constants: Mapping[str, TensorProto]
    shapes: Mapping[str, Shape]
    about: Mapping[str, str] = field(default_factory=dict)

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


def read(path: Path) -> Graph:
    """Any ONNX file, its external data left where it is. Raises DistillError in one line."""
    model = read_graph(path)
    try:
        model = inliner.inline_local_functions(model) if model.functions else model
    except Exception as error:  # what a damaged file makes it raise
        reason = "not a readable ONNX file (its functions are damaged)"
        raise DistillError(f"{path}: {reason}") from error
    parts = list(graphs(model.graph))
    nodes = tuple(_node(node) for graph in parts for node in graph.node)
    weights = {t.name: t for graph in parts for t in _weights(graph)}
    constants = weights | dict(_constants(nodes))
    external = external_files(model)
    try:
        inferred = shape_inference.infer_shapes(model)
    except Exception:  # a broken graph is for a rule to tell; what it declares still counts
        inferred = model
    inputs = (v for v in inferred.graph.input if v.name not in constants)
    shaped = (*inferred.graph.value_info, *inferred.graph.input)
    files = (path, *(path.parent / name for name in external))
    return Graph(
        path=path,
        size=sum(file.stat().st_size for file in files if file.is_file()),
        external=external,
        opset=next((o.version for o in model.opset_import if o.domain in STANDARD), 0),
        nodes=nodes,
        inputs=tuple(map(_tensor, inputs)),
        outputs=tuple(map(_tensor, inferred.graph.output)),
        constants=constants,
        shapes={v.name: s for v in shaped if (s := _shape(v)) is not None},
        about={each.key: each.value for each in model.metadata_props},
    )


def _node(node: onnx.NodeProto) -> Node:
    values = {a.name: _plain(helper.get_attribute_value(a)) for a in node.attribute}
    outputs = tuple(node.output)
    name = node.name or next(iter(outputs), "")
    return Node(name, node.op_type, node.domain, tuple(node.input), outputs, values)


def _weights(graph: onnx.GraphProto) -> Iterator[TensorProto]:
    """The weights, of sparse ones only their shapes."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield TensorProto(
            name=sparse.values.name, data_type=sparse.values.data_type, dims=sparse.dims,
            data_location=TensorProto.EXTERNAL,
        )  # fmt: skip


def _constants(nodes: tuple[Node, ...]) -> Iterator[tuple[str, TensorProto]]:
    """What Constant nodes hold, by the names of their outputs."""
    for node in nodes:
        values = [v for k, v in node.attributes.items() if k.startswith("value")]
        if node.operator != "Constant" or len(values) != 1 or not node.outputs:
            continue
        if isinstance(values[0], TensorProto):
            yield node.outputs[0], values[0]
            continue
        array = np.asarray(values[0])
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        if array.dtype.kind in "fiSU":  # numbers or text, not what a damaged file may have there
            content = array if array.dtype.kind in "fi" else array.astype(object)
            yield node.outputs[0], numpy_helper.from_array(content)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    is_list = hasattr(value, "__len__") and not hasattr(value, "DESCRIPTOR")
    return list(value) if is_list and not isinstance(value, str) else value


def _tensor(value: onnx.ValueInfoProto) -> Tensor:
    kind = value.type.tensor_type
    dims = [str(d.dim_value or d.dim_param or "?") for d in kind.shape.dim]
    text = "×".join(dims) if kind.HasField("shape") else "unknown"
    return Tensor(value.name, _shape(value), text, TensorProto.DataType.Name(kind.elem_type))


def _shape(value: onnx.ValueInfoProto) -> Shape | None:
    kind = value.type.tensor_type
    if not kind.HasField("shape"):
        return None
    return tuple(d.dim_value if d.dim_value > 0 else None for d in kind.shape.dim)
