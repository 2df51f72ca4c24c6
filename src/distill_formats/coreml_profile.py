"""Core ML through ONNX Runtime's CoreML provider, as an ML Program (iOS 15, macOS 12 and later).

The table is that of ONNX Runtime 1.31.1, onnxruntime/tools/mobile_helpers/
coreml_supported_mlprogram_ops.md; a test holds it against the installed package. What is not in it
runs on the CPU. A .mlpackage, as distill.export formats=[coreml] writes it, needs no table.
"""

from collections.abc import Iterator

from distill.check import operators, shared
from distill.check.onnx_graph import Graph
from distill.check.shared import Cause, Finding, Profile
from distill_formats.app_graphs import read_package

TABLE = 'ONNX Runtime 1.31.1, "CoreML Execution Provider", table of ML Program operators'
SOURCE = "ONNX Runtime, resize_op_builder.cc of the CoreML provider (read 2026-11)"
OPERATORS = operators.names(
    """
    Add And Argmax AveragePool Cast Clip Concat Conv ConvTranspose Cos DepthToSpace Ceil Div Elu
    Erf Exp GatherND Gemm Gelu GlobalAveragePool GlobalMaxPool GridSample GroupNormalization
    HardSigmoid Identity InstanceNormalization LayerNormalization LeakyRelu MatMul MaxPool Max Mul
    Pow PRelu Reciprocal ReduceSum ReduceMean ReduceMax Relu Reshape Resize Round Shape Sin Slice
    Softplus Split Sub Sigmoid Softmax Sqrt Squeeze Tanh Tile Transpose Unsqueeze Where
    com.microsoft:QuickGelu com.microsoft:FusedConv
    """
)
# ArgMax is spelled Argmax there; constants are folded before the provider sees the graph.
ALLOWED = OPERATORS | {"ArgMax", "Constant"}
CONDITIONS = operators.PLANAR | {
    "And": "both inputs are bool",
    "GatherND": "batch_dims is 0",
    "GridSample": "input of four dimensions, mode linear or zeros",
    "Pow": "both inputs are float32",
    "Tile": "at most five dimensions",
    "Where": "both branches are float",
}
OUTSIDE = Cause(
    "the provider leaves it to the CPU, and the picture travels there and back",
    TABLE,
    "export without it; distill.export formats=[coreml] converts the network from PyTorch",
)
BETTER = operators.UPSAMPLE | {"Pad": operators.NO_PADDING}
TRANSPOSED = Cause(
    "the provider leaves such a transposed convolution to the CPU",
    TABLE,
    "kernel 2, stride 2 without any padding, as distill's decoders have it",
)

# Of a package, which Core ML runs itself.
SPEC = 'coremltools, "Flexible Input Shapes" and "Typed Execution" (read 2026-11)'
OLDER = Cause(
    "iOS 15 and macOS 12 run it, older systems do not",
    'Apple, Core ML model format specification, "specificationVersion"',
    "no need to for apps of today",
    "note",
)
FREE = Cause(
    "the Neural Engine takes a file of a range of sizes at its default size only",
    "Apple Developer Forums, thread 724930, answer of an engineer (read 2026-11)",
    "export one size: exporter.size=[HEIGHT,WIDTH] without exporter.dynamic",
    "note",
)
ARRAY = Cause(
    "an app has to turn pixel buffers into arrays and back",
    SPEC,
    "leave exporter.input and exporter.output out: pictures in and out",
    "note",
)
WIDE = Cause("the Neural Engine computes in float16", SPEC, "distill.export writes float16", "note")


def package_tensors(graph: Graph) -> Iterator[Finding]:
    for tensor in (*graph.inputs, *graph.outputs):
        if not tensor.dims.endswith("a picture"):
            yield ARRAY.at(None, f"{tensor.name} is an array, {tensor.dims}", tensor.name)
    for tensor in graph.inputs:
        if not tensor.fixed:
            yield FREE.at(None, f"input of no fixed size: {tensor.dims}", tensor.name)


def package_kind(graph: Graph) -> Iterator[Finding]:
    version = int(graph.about["version"])
    systems = {6: "iOS 15", 7: "iOS 16", 8: "iOS 17", 9: "iOS 18", 10: "iOS 26"}
    yield OLDER.at(None, f"specification {version}: {systems.get(version, 'iOS 14')}", "file")
    if graph.about["kind"] != "mlProgram":
        yield WIDE.at(None, f"{graph.about['kind']}, no ML program", "file")


PACKAGE = Profile(
    "coreml",
    "Core ML (iPhone, iPad, Mac)",
    (package_kind, package_tensors),
    form=".mlpackage",
    reader=read_package,
)
PROFILE = Profile(
    "coreml",
    "Core ML by ONNX Runtime's provider, ML Program (iPhone, iPad, Mac)",
    (
        *shared.EVERYWHERE,
        shared.fixed(shared.ORT_FIXED, "Core ML wants fixed sizes"),
        operators.known(ALLOWED, OUTSIDE, BETTER),
        operators.resize(SOURCE, strict_nearest=False),
        operators.two_dimensional(TABLE, (3, 4)),
        operators.fixed_inputs("Conv", {2: "bias"}, TABLE),
        operators.fixed_inputs("ConvTranspose", {1: "weight", 2: "bias"}, TABLE),
        operators.fixed_inputs("Gemm", {1: "matrix B"}, TABLE),
        operators.fixed_inputs("Slice", {1: "starts", 2: "ends", 3: "axes", 4: "steps"}, TABLE),
        operators.fixed_inputs("Split", {1: "sizes"}, TABLE),
        operators.attribute("ConvTranspose", "auto_pad", "NOTSET", ("NOTSET", "VALID"), TRANSPOSED),
        operators.attribute("ConvTranspose", "output_padding", [0, 0], ([0, 0], []), TRANSPOSED),
        operators.attribute("ConvTranspose", "output_shape", [], ([],), TRANSPOSED),
        operators.conditional(CONDITIONS, TABLE),
        shared.subnormal,
    ),
    also=PACKAGE,
)
