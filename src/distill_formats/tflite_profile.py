"""Android and others by LiteRT, formerly TensorFlow Lite: a .tflite file, on CPU and GPU."""

from collections.abc import Iterator

from distill.check import operators, shared
from distill.check.onnx_graph import Graph
from distill.check.shared import Cause, Finding, Profile
from distill.core.errors import reason_of
from distill_formats.app_graphs import read_tflite

TABLE = 'Google AI Edge, "GPU delegates for LiteRT", supported operations (read 2026-11)'
RUNTIME = "LiteRT's own operators; a custom one comes with the app that defines it"
# What that page lists, and does without: constants and what XNNPACK folds.
ON_GPU = operators.names(
    """
    ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D EXP FULLY_CONNECTED LOGICAL_AND
    LOGISTIC LSTM MAX_POOL_2D MAXIMUM MINIMUM MUL PAD PRELU RELU RELU6 RESHAPE RESIZE_BILINEAR
    SOFTMAX STRIDED_SLICE SUB TRANSPOSE_CONV
    """
)
BESIDE = Cause(
    "the page that lists the GPU's operators does not name it: the GPU delegate may leave it to "
    "the CPU, and the picture travels there and back",
    TABLE,
    "time the file with the GPU delegate and without; XNNPACK on the CPU runs it",
    "note",
)
CUSTOM = Cause("LiteRT has no such operator", RUNTIME, "export without it")
REFUSED = Cause("it cannot run at all", "LiteRT's interpreter, on this machine", "export it again")
FREE = Cause(
    "the GPU delegate is built for one size, and again at every other",
    TABLE,
    "export one size: exporter.size=[HEIGHT,WIDTH] without exporter.dynamic",
    "note",
)
NO_METADATA = Cause(
    "tools that make code of a file do not know its range, colours and licence",
    'Google AI Edge, "Adding metadata to LiteRT models" (read 2026-11)',
    "distill.export writes it",
    "note",
)


def interpreter_errors(graph: Graph) -> Iterator[Finding]:
    """What the interpreter of this machine says, unless a custom operator is why."""
    from ai_edge_litert.interpreter import Interpreter

    if any(node.domain == "custom" for node in graph.nodes):
        return
    try:
        interpreter = Interpreter(model_path=str(graph.path), num_threads=1)
        for end, tensor in zip(interpreter.get_input_details(), graph.inputs, strict=True):
            if not tensor.fixed:
                interpreter.resize_tensor_input(end["index"], [n or 64 for n in tensor.shape or ()])
        interpreter.allocate_tensors()
    except Exception as error:  # RuntimeError and ValueError of its own
        yield REFUSED.at(None, f"LiteRT refuses it ({reason_of(error, 200)})", "file")


def custom(graph: Graph) -> Iterator[Finding]:
    for node in graph.nodes:
        if node.domain == "custom":
            yield CUSTOM.at(node, f"{node.operator} is a custom operator")


def beside(graph: Graph) -> Iterator[Finding]:
    for node in graph.nodes:
        if node.domain != "custom" and node.operator not in ON_GPU:
            yield BESIDE.at(node, f"{node.operator} is not in the GPU's list")


def free(graph: Graph) -> Iterator[Finding]:
    for tensor in graph.inputs:
        if not tensor.fixed:
            yield FREE.at(None, f"input of no fixed size: {tensor.dims}", tensor.name)


def without_metadata(graph: Graph) -> Iterator[Finding]:
    if "TFLITE_METADATA" not in graph.about:
        yield NO_METADATA.at(None, "no metadata", "file")


PROFILE = Profile(
    "tflite",
    "LiteRT (TensorFlow Lite) on phones",
    (interpreter_errors, custom, shared.in_memory, beside, free, without_metadata),
    form=".tflite",
    reader=read_tflite,
)
