"""From any ONNX file to a graph that the rules can be asked about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, inliner, numpy_helper, shape_inference

from distill.core.errors import DistillError
from distill.devices.onnx_graph import STANDARD, Graph, Node, Shape, Tensor


def read(path: Path) -> Graph:
    """Any ONNX file, its external data left where it is. Raises DistillError in one line."""
    model = _load(path)
    external = sorted({_location(t) for t in _tensors(model.graph) if _is_external(t)})
    nodes = tuple(_nodes(model.graph))
    constants = {t.name: t for t in _initializers(model.graph)} | dict(_constants(nodes))
    inferred = _inferred(model)
    given = (v for v in inferred.graph.input if v.name not in constants)
    return Graph(
        path=path,
        size=path.stat().st_size + sum(_bytes(path.parent / name) for name in external),
        external=tuple(external),
        opset=next((o.version for o in model.opset_import if o.domain in STANDARD), 0),
        nodes=nodes,
        inputs=tuple(map(_tensor, given)),
        outputs=tuple(map(_tensor, inferred.graph.output)),
        constants=constants,
        shapes={v.name: s for v in inferred.graph.value_info if (s := _shape(v)) is not None}
        | {v.name: s for v in inferred.graph.input if (s := _shape(v)) is not None},
    )


def _load(path: Path) -> onnx.ModelProto:
    if not path.is_file():
        raise DistillError(f"{path}: no such file")
    try:
        model = onnx.load(str(path), format="protobuf", load_external_data=False)
        if model.functions:
            model = inliner.inline_local_functions(model)
    except Exception as error:  # protobuf's own classes, and what a damaged file makes it raise
        raise DistillError(
            f"{path}: not a readable ONNX file (damaged, cut short, or over protobuf's 2 GB)"
        ) from error
    if not model.ir_version or not model.graph.node:  # what protobuf makes of an empty file
        raise DistillError(f"{path}: not an ONNX file, or one without a network")
    return model


def _inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    try:
        return shape_inference.infer_shapes(model)
    except Exception:  # a broken graph is for a rule to tell; what it declares still counts
        return model


def _nodes(graph: onnx.GraphProto) -> Iterator[Node]:
    for node in graph.node:
        values = {a.name: _plain(helper.get_attribute_value(a)) for a in node.attribute}
        outputs = tuple(node.output)
        name = node.name or next(iter(outputs), "")
        yield Node(name, node.op_type, node.domain, tuple(node.input), outputs, values)
    for inner in _inner(graph):
        yield from _nodes(inner)


def _inner(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The bodies of If, Loop and Scan."""
    for node in graph.node:
        for attribute in node.attribute:
            yield from attribute.graphs
            if attribute.HasField("g"):
                yield attribute.g


def _initializers(graph: onnx.GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield TensorProto(
            name=sparse.values.name, data_type=sparse.values.data_type, dims=sparse.dims,
            data_location=TensorProto.EXTERNAL,
        )  # fmt: skip
    for inner in _inner(graph):
        yield from _initializers(inner)


def _tensors(graph: onnx.GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    yield from (a.t for n in graph.node for a in n.attribute if a.HasField("t"))
    for inner in _inner(graph):
        yield from _tensors(inner)


def _constants(nodes: tuple[Node, ...]) -> Iterator[tuple[str, TensorProto]]:
    for node in nodes:
        values = [v for k, v in node.attributes.items() if k.startswith("value")]
        if node.operator == "Constant" and len(values) == 1:
            tensor = isinstance(values[0], TensorProto)
            yield node.outputs[0], values[0] if tensor else _tensor_of(values[0])


def _tensor_of(value: Any) -> TensorProto:
    array = np.asarray(value)
    if array.dtype == np.float64:
        array = array.astype(np.float32)
    return numpy_helper.from_array(array if array.dtype.kind in "fi" else array.astype(object))


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return list(value) if not isinstance(value, (str, int, float)) and _is_list(value) else value


def _is_list(value: Any) -> bool:
    return hasattr(value, "__len__") and not hasattr(value, "DESCRIPTOR")


def _tensor(value: onnx.ValueInfoProto) -> Tensor:
    kind = value.type.tensor_type
    dims = [str(d.dim_value or d.dim_param or "?") for d in kind.shape.dim]
    text = "×".join(dims) if kind.HasField("shape") else "unknown"
    return Tensor(value.name, _shape(value), text)


def _shape(value: onnx.ValueInfoProto) -> Shape | None:
    kind = value.type.tensor_type
    if not kind.HasField("shape"):
        return None
    return tuple(d.dim_value if d.dim_value > 0 else None for d in kind.shape.dim)


def _is_external(tensor: TensorProto) -> bool:
    return tensor.data_location == TensorProto.EXTERNAL


def _location(tensor: TensorProto) -> str:
    return next((e.value for e in tensor.external_data if e.key == "location"), "?")


def _bytes(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
