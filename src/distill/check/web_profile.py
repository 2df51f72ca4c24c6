"""Browsers, by onnxruntime-web: WebAssembly runs every operator, WebGPU those of a table.

The table is that of onnxruntime-web 1.30.0, docs/webgpu-operators.md in the package.
"""

from collections.abc import Iterator

from onnx import defs

from distill.check import operators, shared
from distill.check.onnx_graph import STANDARD, Graph
from distill.check.shared import Cause, Finding, Profile

TABLE = "onnxruntime-web 1.30.0, docs/webgpu-operators.md"
README = "onnxruntime-web 1.30.0, README: WebAssembly covers all ONNX operators"
OPSETS = "onnxruntime-web 1.30.0, docs: support is guaranteed from opset 7 on"
OPERATORS = operators.names(
    """
    Abs Acos Acosh Add ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BatchNormalization Cast Ceil
    Clip Concat Conv ConvTranspose Cos Cosh CumSum DFT DepthToSpace DequantizeLinear Div Einsum Elu
    Equal Erf Exp Expand Flatten Floor Gather GatherElements GatherND Gelu Gemm GlobalAveragePool
    GlobalMaxPool Greater GreaterOrEqual GridSample HardSigmoid HardSwish If InstanceNormalization
    LayerNormalization LeakyRelu Less LessOrEqual Log MatMul MaxPool MemcpyFromHost MemcpyToHost
    Mul Neg Not Pad Pow Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax
    ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize ScatterND Shape
    Sigmoid SimplifiedLayerNormalization Sin Sinh Slice Softmax Split Sqrt Squeeze Sub Tan Tanh
    ThresholdedRelu Tile Transpose Unsqueeze Where
    com.microsoft:Attention com.microsoft:BiasAdd com.microsoft:BiasSplitGelu
    com.microsoft:FastGelu com.microsoft:FusedConv com.microsoft:GatherBlockQuantized
    com.microsoft:Gelu com.microsoft:GroupQueryAttention com.microsoft:MatMulNBits
    com.microsoft:MultiHeadAttention com.microsoft:QuickGelu com.microsoft:RotaryEmbedding
    com.microsoft:SkipLayerNormalization com.microsoft:SkipSimplifiedLayerNormalization
    """
)
ALLOWED = OPERATORS | {"Constant", "Identity"}  # gone before a provider sees the graph
RUNS = (*STANDARD, "ai.onnx.ml", "com.microsoft")
OLD = Cause("older operators are not supported", OPSETS, "export with opset ≥ 7")
STRANGE = Cause("nothing in the browser has this operator", README, "export without it")
BESIDE = Cause(
    "with WebGPU it runs on the processor, and the picture travels there and back",
    TABLE,
    "export without it for WebGPU; WebAssembly runs it",
    "note",
)
UNSEEN = Cause(
    "the live page and <distill-lens> feed float32 alone",
    "docs/embed.md, docs/lens.md",
    "export with exporter.input=float_nchw; for a page of your own snippets/ has the code",
)
SEVERAL = Cause(
    "the live page and <distill-lens> feed one, the picture",
    "docs/embed.md, docs/lens.md",
    "of a student leave exporter.profile out; for a page of your own snippets/ has the code",
)
LAST = Cause(
    "the live page turns channels round for it, <distill-lens> does not",
    "docs/lens.md, docs/embed.md",
    "for the element export with exporter.input=float_nchw",
    "note",
)
CORNERS = Cause(
    "WebGPU's Resize does not take it when it makes pictures smaller",
    TABLE,
    "another coordinate_transformation_mode",
    "note",
)


def old(graph: Graph) -> Iterator[Finding]:
    if graph.opset < 7 and any(node.domain in STANDARD for node in graph.nodes):
        yield OLD.at(None, f"opset {graph.opset}, 7 or newer wanted", "file")


def strange(graph: Graph) -> Iterator[Finding]:
    """Operators of other makers' domains, and names that ONNX does not have."""
    for node in graph.nodes:
        ours = node.domain in STANDARD and not defs.has(node.operator)
        if ours or node.domain not in RUNS:
            yield STRANGE.at(node, f"{operators.full_name(node)} is no operator of ONNX Runtime's")


def unseen(graph: Graph) -> Iterator[Finding]:
    """What our pages do not feed: bytes, channels last, a second input."""
    if len(graph.inputs) > 1:
        names = ", ".join(tensor.name for tensor in graph.inputs)
        yield SEVERAL.at(None, f"inputs: {names}; one wanted", graph.inputs[1].name)
    for tensor in graph.inputs[:1]:
        shape, what = tensor.shape or (), f"input {tensor.kind.lower()} {tensor.dims}"
        if len(shape) == 4 and tensor.kind != "FLOAT":
            yield UNSEEN.at(None, what, tensor.name)
        elif len(shape) == 4 and shape[3] == 3 != shape[1]:
            yield LAST.at(None, what, tensor.name)


def corners(graph: Graph) -> Iterator[Finding]:
    for node in graph.of("Resize"):
        if node.get("coordinate_transformation_mode", "half_pixel") == "align_corners":
            yield CORNERS.at(node, "Resize by align_corners")


def beside(graph: Graph) -> Iterator[Finding]:
    """Operators that WebGPU has no kernel for; strange ones are said already."""
    custom = {finding.node for finding in strange(graph)}
    rule = operators.known(ALLOWED, BESIDE, operators.UPSAMPLE)
    for finding in rule(graph):
        if finding.node not in custom:
            yield finding


PROFILE = Profile(
    "web",
    "onnxruntime-web (WebAssembly and WebGPU in browsers)",
    (
        *shared.EVERYWHERE,
        old,
        strange,
        operators.two_dimensional(TABLE, (3, 4)),
        beside,
        unseen,
        corners,
        shared.subnormal,
    ),
)
