"""A traced graph made plain: what tracing leaves behind, undone without changing the output."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator


def tidy(model: onnx.ModelProto) -> None:
    """All of this module, in place."""
    inline_identities(model.graph)
    fold_constants(model)
    plain_arithmetic(model.graph)
    store_norms(model.graph)
    drop_unread(model.graph)
    strip(model)


def inline_identities(graph: onnx.GraphProto) -> None:
    """Tensors that happen to be equal are exported once and reached through Identity: undo it."""
    outputs = {value.name for value in graph.output}
    source = {
        node.output[0]: node.input[0]
        for node in graph.node
        if node.op_type == "Identity" and node.output[0] not in outputs
    }
    for node in list(graph.node):
        if node.output[0] in source:
            graph.node.remove(node)
        for i, name in enumerate(node.input):
            while name in source:
                name = source[name]
            node.input[i] = name


def fold_constants(model: onnx.ModelProto) -> None:
    """Compute what hangs on constants alone, as the pads of a Pad do from opset 11 on.

    Shape inference needs the numbers, and devices want them.
    """
    graph = model.graph
    known = {tensor.name for tensor in graph.initializer}
    fixed = []  # the nodes that no input of the network reaches
    for node in graph.node:
        if all(name in known for name in node.input if name):
            fixed.append(node)
            known.update(node.output)
    computed = [node for node in fixed if node.op_type != "Constant"]
    if not computed:
        return
    inside = {id(node) for node in computed}
    wanted = {name for n in graph.node if id(n) not in inside for name in n.input}
    names = [name for node in computed for name in node.output if name in wanted]
    graph.initializer.extend(_evaluated(model, fixed, names))
    for node in computed:
        graph.node.remove(node)


def plain_arithmetic(graph: onnx.GraphProto) -> None:
    """x - c as x + (-c), and x / c as x · (1/c), for a constant c.

    A network's change of range then needs no operator that students have not. Exact for powers of
    two, as all of ours are.
    """
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    for node in graph.node:
        if node.op_type not in ("Sub", "Div"):
            continue
        value = constants.get(node.input[1])
        if value is None or value.dtype != np.float32:
            continue
        node.op_type, other = ("Add", -value) if node.op_type == "Sub" else ("Mul", 1 / value)
        name = f"{node.output[0]}.constant"
        graph.initializer.append(numpy_helper.from_array(np.asarray(other, np.float32), name))
        node.input[1] = name


def store_norms(graph: onnx.GraphProto) -> None:
    """The ones and zeros of an InstanceNorm without scale and shift, as weights.

    Tracing writes them as operators, and tools that read weights only do not find them there.
    """
    read = {n for node in graph.node if node.op_type == "InstanceNormalization" for n in node.input}
    found = [n for n in graph.node if n.op_type == "Constant" and n.output[0] in read]
    for node in found:
        tensor = graph.initializer.add()
        tensor.CopyFrom(node.attribute[0].t)
        tensor.name = node.output[0]
        graph.node.remove(node)


def drop_unread(graph: onnx.GraphProto) -> None:
    """Constants and weights that no node reads any more."""
    read = {name for node in graph.node for name in node.input}
    read |= {value.name for value in graph.output}
    for node in list(graph.node):
        if node.op_type == "Constant" and node.output[0] not in read:
            graph.node.remove(node)
    for tensor in list(graph.initializer):
        if tensor.name not in read:
            graph.initializer.remove(tensor)


def strip(model: onnx.ModelProto) -> None:
    """Drop doc strings and metadata: stack traces of the machine that exported it."""
    model.doc_string = ""
    model.graph.doc_string = ""
    del model.metadata_props[:]
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]


def _evaluated(
    model: onnx.ModelProto, nodes: Iterable[onnx.NodeProto], names: list[str]
) -> list[onnx.TensorProto]:
    """The named tensors, computed by the reference implementation of ONNX."""
    read = {name for node in nodes for name in node.input}
    given = [tensor for tensor in model.graph.initializer if tensor.name in read]
    outputs = [onnx.ValueInfoProto(name=name) for name in names]
    graph = helper.make_graph(list(nodes), "constants", [], outputs, given)
    part = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    values = ReferenceEvaluator(part).run(None, {})
    return [
        numpy_helper.from_array(np.asarray(value), name)
        for name, value in zip(names, values, strict=True)
    ]
