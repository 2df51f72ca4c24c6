"""TFLite, Core ML and ExecuTorch files as the rules see them, by their own makers' readers."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from distill.check.onnx_graph import Graph, Node, Shape, Tensor
from distill.core.errors import DistillError, extra_package, library_errors
from distill.core.process import silent
from distill_formats.executorch import ABOUT_METHOD

# Nodes, inputs and outputs, what the file says of itself, and shapes, where it has any.
Parts = tuple[list[Node], list[list[Tensor]], dict[str, str], dict[str, Shape]]


def _read(path: Path, kind: str, module: str, extra: str, reader: Callable[..., Parts]) -> Graph:
    """What `reader` finds in a file with a package; what a damaged one makes it raise is a line."""
    if not path.exists():
        raise DistillError(f"{path}: no such file")
    package = extra_package(module, str(path), f"pip install 'distill[{extra}]'")
    files = [each for each in (path, *path.rglob("*")) if each.is_file()]
    size = sum(each.stat().st_size for each in files)
    with library_errors(f"{path}: not a readable {kind}"):
        nodes, sides, about, shapes = reader(path, package)
        inputs, outputs = map(tuple, sides)
        return Graph(path, size, (), 0, tuple(nodes), inputs, outputs, {}, shapes, about)


def read_tflite(path: Path) -> Graph:
    """One node an operator, by its name in TFLite's schema; a custom one has the domain custom."""
    return _read(path, "TFLite file", "ai_edge_litert.schema_py_generated", "tflite", _tflite)


def read_package(path: Path) -> Graph:
    """One node an operation of a Core ML program; `about` has the version and kinds of its ends."""
    logging.getLogger("coremltools").setLevel(logging.ERROR)  # it misses its runtime on Linux
    return _read(path, "Core ML package", "coremltools", "coreml", _core_ml)


def read_pte(path: Path) -> Graph:
    """One node an operator, or a part that a backend runs: its name, in the domain delegate.

    `about` is what distill wrote into the file; empty in other people's.
    """
    with silent():
        return _read(
            path, "ExecuTorch file", "executorch.exir._serialize._program", "executorch", _pte
        )


def _tflite(path: Path, schema: Any) -> Parts:
    content = path.read_bytes()
    if content[4:8] != b"TFL3":
        raise ValueError("no TFL3 at its beginning")
    names = {number: name for name, number in vars(schema.BuiltinOperator).items()}
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(content, 0))
    graph, nodes, shapes = model.subgraphs[0], list[Node](), dict[str, Shape]()
    tensor_names = [tensor.name.decode() for tensor in graph.tensors]
    for name, tensor in zip(tensor_names, graph.tensors, strict=True):
        sides = tensor.shape if tensor.shapeSignature is None else tensor.shapeSignature
        shapes[name] = tuple(None if side < 0 else int(side) for side in sides)
    for operator in graph.operators:
        code = model.operatorCodes[operator.opcodeIndex]
        custom = (code.customCode or b"").decode()
        name = custom or names[max(code.builtinCode, code.deprecatedBuiltinCode)]
        inputs, outputs = (
            tuple(tensor_names[n] for n in numbers if n >= 0)
            for numbers in (operator.inputs, operator.outputs)
        )
        domain = "custom" if custom else ""
        nodes.append(Node(f"{name} {len(nodes)}", name, domain, inputs, outputs, {}))
    interfaces = [
        [_tensor(tensor_names[n], shapes[tensor_names[n]]) for n in e]
        for e in (graph.inputs, graph.outputs)
    ]
    about = {(entry.name or b"").decode(): "" for entry in model.metadata or []}
    return nodes, interfaces, about, shapes


def _core_ml(path: Path, ct: Any) -> Parts:
    spec = ct.models.MLModel(str(path), skip_model_load=True).get_spec()
    nodes = []
    for function in spec.mlProgram.functions.values():
        (block,) = function.block_specializations.values()
        for operation in block.operations:
            inputs = [n.name for each in operation.inputs.values() for n in each.arguments]
            outputs = tuple(output.name for output in operation.outputs)
            nodes.append(Node(outputs[0], operation.type, "", tuple(inputs), outputs, {}))
    sides = [[*map(_end, e)] for e in (spec.description.input, spec.description.output)]
    about = {"kind": spec.WhichOneof("Type"), "version": str(spec.specificationVersion)}
    return nodes, sides, about, {}


def _pte(path: Path, package: Any) -> Parts:
    content = path.read_bytes()
    if content[4:8] != b"ET12":  # the schema of ExecuTorch 1.5.1
        raise ValueError("no ET12 at its beginning, which ExecuTorch writes and reads")
    program = package.deserialize_pte_binary(content).program
    plans = {plan.name: plan for plan in program.execution_plan}
    about, forward = plans.get(ABOUT_METHOD), plans["forward"]
    nodes = list[Node]()
    for step in (each.instr_args for chain in forward.chains for each in chain.instructions):
        if hasattr(step, "op_index"):
            operator = forward.operators[step.op_index]
            name, domain = f"{operator.name}.{operator.overload}".rstrip("."), ""
        elif hasattr(step, "delegate_index"):
            name, domain = forward.delegates[step.delegate_index].id, "delegate"
        else:  # moves of values
            continue
        nodes.append(Node(f"{name} {len(nodes)}", name, domain, (), (), {}))
    sides = [
        [_tensor(name, tuple(forward.values[number].val.sizes)) for number in numbers]
        for name, numbers in (("photo", forward.inputs), ("stylized", forward.outputs))
    ]
    facts = json.loads(about.values[about.outputs[0]].val.string_val) if about else {}
    return nodes, sides, facts, {}


def _tensor(name: str, shape: Shape, note: str = "") -> Tensor:
    return Tensor(name, shape, "×".join(str(side or "?") for side in shape) + note)


def _end(feature: Any) -> Tensor:
    kind = feature.type.WhichOneof("Type")
    if kind == "imageType":
        image = feature.type.imageType
        free = image.WhichOneof("SizeFlexibility") is not None
        return _tensor(
            feature.name, (None, None) if free else (image.height, image.width), ", a picture"
        )
    array = feature.type.multiArrayType
    free = array.WhichOneof("ShapeFlexibility") is not None
    return _tensor(feature.name, tuple(None if free else int(side) for side in array.shape))
