"""Android's NNAPI through ONNX Runtime's provider (Android 8.1 to 14; deprecated since 15).

The table is that of ONNX Runtime 1.31.1, onnxruntime/tools/mobile_helpers/nnapi_supported_ops.md;
a test holds it against the installed package. What is not in it runs on the CPU.
"""

from collections.abc import Iterator

import numpy as np

from distill.check import operators, shared
from distill.check.onnx_graph import Graph
from distill.check.shared import Cause, Finding, Profile
from distill.core.errors import counted

TABLE = 'ONNX Runtime 1.31.1, "NNAPI Execution Provider", table of supported operators'
RESIZE = "ONNX Runtime, resize_op_builder.cc of the NNAPI provider (read 2026-11)"
CONV = "ONNX Runtime, conv_op_builder.cc of the NNAPI provider (read 2026-11)"
OPERATORS = operators.names(
    """
    Abs Add AveragePool BatchNormalization Cast Clip Concat Conv DepthToSpace DequantizeLinear Div
    Elu Exp Flatten Floor Gather Gemm GlobalAveragePool GlobalMaxPool Identity LeakyRelu Log LRN
    MatMul MaxPool Max Min Mul Neg Pad Pow PRelu QLinearConv QLinearMatMul QuantizeLinear
    ReduceMean Relu Reshape Resize Sigmoid Sin Slice Softmax Split Sqrt Squeeze Sub Tanh Transpose
    Unsqueeze com.microsoft:QLinearAdd com.microsoft:QLinearAveragePool
    com.microsoft:QLinearSigmoid
    """
)
ALLOWED = OPERATORS | {"Constant"}  # folded before the provider sees the graph
CONDITIONS = operators.PLANAR | {
    "Gather": "its indices are constants or int32",
    "Gemm": "B is a constant, or transB is 1",
    "Split": "the parts are of one size",
}
OUTSIDE = Cause(
    "the provider leaves it to the CPU, and the picture travels there and back",
    TABLE,
    "export without it",
)
BETTER = operators.UPSAMPLE | {
    "ConvTranspose": "of a student: distill.export exporter.profile=strict does without it",
}
MODE = Cause("NNAPI has the other kind only", TABLE, "export with that one")
EDGE = Cause(MODE.why, TABLE, operators.NO_PADDING)
DILATED = Cause("NNAPI's grouped convolution knows no dilation", CONV, "one group, or no dilation")
NEGATIVE = Cause("NNAPI cannot cut by padding", TABLE, "cut with Slice")
DEPRECATED = Cause(
    "Android 15 deprecates NNAPI; phones may leave it out",
    'Android NDK, "NNAPI Migration Guide" (updated 2025-04; read 2026-11)',
    "try ONNX Runtime's XNNPACK or plain CPU provider beside it, and keep the faster one",
    "note",
)


def dilated_groups(graph: Graph) -> Iterator[Finding]:
    """Convolutions that are both grouped and dilated; depthwise ones are no grouped ones."""
    for node in graph.of("Conv"):
        group, dilations = node.get("group", 1), node.get("dilations", [])
        grouped = group not in (1, operators.incoming(graph, node))
        if grouped and any(value != 1 for value in dilations):
            yield DILATED.at(node, f"{counted(group, 'group')} with dilations {dilations}")


def negative_pads(graph: Graph) -> Iterator[Finding]:
    for node in graph.of("Pad"):
        pads = graph.value(node.inputs[1]) if len(node.inputs) > 1 else node.get("pads", [])
        if pads is not None and (np.asarray(pads) < 0).any():
            yield NEGATIVE.at(node, f"negative pads {np.asarray(pads).tolist()}")


PROFILE = Profile(
    "nnapi",
    "NNAPI by ONNX Runtime's provider (Android)",
    (
        *shared.EVERYWHERE,
        shared.fixed(shared.ORT_FIXED, "NNAPI wants fixed sizes"),
        operators.known(ALLOWED, OUTSIDE, BETTER),
        operators.resize(RESIZE, strict_nearest=True),
        operators.two_dimensional(TABLE),
        operators.fixed_inputs("Conv", {1: "weight", 2: "bias"}, TABLE),
        dilated_groups,
        operators.attribute("DepthToSpace", "mode", "DCR", ("DCR",), MODE),
        operators.attribute("Pad", "mode", "constant", ("constant",), EDGE),
        operators.fixed_inputs("Pad", {1: "pads", 2: "value"}, TABLE),
        negative_pads,
        operators.fixed_inputs("Squeeze", {1: "axes"}, TABLE),
        operators.fixed_inputs("Unsqueeze", {1: "axes"}, TABLE),
        operators.fixed_inputs("Split", {1: "sizes"}, TABLE),
        operators.fixed_inputs("QuantizeLinear", {1: "scale", 2: "zero point"}, TABLE),
        operators.fixed_inputs("DequantizeLinear", {1: "scale", 2: "zero point"}, TABLE),
        operators.conditional(CONDITIONS, TABLE),
        shared.subnormal,
        shared.always(DEPRECATED, "NNAPI is deprecated"),
    ),
)
