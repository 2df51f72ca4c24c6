"""A traced graph made plain: what tracing leaves behind, undone without changing the output."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper


def tidy(model: onnx.ModelProto) -> None:
    """All of this module, in place.

    Tensors that happen to be equal are exported once and reached through Identity, and what hangs
    on constants alone, as the pads of a Pad from opset 11 on, is computed: shape inference needs
    the numbers, and devices want them. Documentation and metadata are stack traces of the machine
    that exported it.
    """
    import onnx_ir  # a second or two, with onnxscript: only an export needs them
    from onnx_ir.passes import common
    from onnxscript import optimizer

    plain = onnx_ir.from_proto(model)
    common.IdentityEliminationPass()(plain)
    optimizer.fold_constants(plain, should_fold=lambda _: True)  # large ones, too
    common.ClearMetadataAndDocStringPass()(plain)
    model.CopyFrom(onnx_ir.to_proto(plain))
    model.doc_string = ""
    del model.metadata_props[:], model.graph.value_info[:]  # the latter is what folding inferred
    plain_arithmetic(model.graph)
    store_norms(model.graph)
    drop_unread(model.graph)


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
