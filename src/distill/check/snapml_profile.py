"""SnapML: lenses for Snapchat, made with Lens Studio.

Two things are known to run: what the lens models released with the paper are made of, since they
ran in the app, and what Snap's table of layers allows. Of that table the rows up to "Eltwise Div"
are held here; what neither names is refused, with the advice to look it up.
"""

from collections.abc import Iterator

from distill.check import operators, shared
from distill.check.onnx_graph import Graph, Node
from distill.check.shared import Cause, Finding, Profile
from distill.core.errors import counted

TABLE = 'Snap, Lens Studio 5.x documentation, SnapML, "Compatibility" (read 2026-11)'
STORAGE = 'Snap, Lens Studio documentation, "Remote Assets", Storage Limits: 10 MB (read 2026-11)'
RELEASED = "the lens models released with the paper (dhrits/Anime), which ran in Snapchat"
LIMIT = 10_000_000  # bytes: the stricter reading of 10 MB; 10 MiB would be 10,485,760

RELEASED_OPERATORS = frozenset({"Conv", "Relu", "Add", "Upsample", "Sigmoid", "Constant", "Mul"})
TABLE_OPERATORS = frozenset(
    {"Abs", "ArgMax", "ArgMin", "MatMul", "BatchNormalization", "Concat", "Constant", "Conv"}
    | {"ConvTranspose", "Cos", "Add", "Div"}
)
OPERATORS = RELEASED_OPERATORS | TABLE_OPERATORS | {"Resize"}  # Upsample's name from opset 10 on
OFF_NPU = {"ArgMax": "", "ArgMin": "", "Cos": "", "Div": "", "MatMul": ", nor on Android GPUs"}
ELEMENTWISE = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow")
PASSING = ("Identity", "Cast", *ELEMENTWISE)

OUTSIDE = Cause(
    "not known to run: none of the released models has it, nor the part of Snap's table that this "
    "profile was made from (its first rows, up to Eltwise Div)",
    f"{TABLE}; {RELEASED}",
    "look it up in Snap's table; of a student: distill.export exporter.profile=strict",
)
BETTER = {"GlobalAveragePool": operators.SUMMARY_FILE, "Pad": operators.NO_PADDING}
NEAREST = Cause(
    "the released models enlarge by nearest only",
    RELEASED,
    "nearest ×2, as distill's decoders do, or look other modes up in Snap's table; for the "
    "thumbnail of a student with global_statistics exporter.profile=strict",
)
AXIS = Cause("only some axes are supported", TABLE, "arrange the network so that it is another")
NPU = Cause(
    "the iPhone's NPU does not have the layer, so that this part goes to its GPU or CPU",
    TABLE,
    "no need to; without it the whole network could stay on the NPU",
    "note",
)
CONSTANT = Cause(
    'the row "Constant" is not there on the iPhone\'s NPU, so that this part leaves it',
    TABLE,
    "leave it out of the network: a last ×255 or shift is a scale and bias of the import settings",
    "note",
)
LARGE = Cause(
    "a larger model cannot be stored with a lens",
    STORAGE,
    "a narrower student (encoder=, decoder=), or half precision",
)
GROUPS = Cause(
    "Android GPUs take plain and depthwise convolutions only",
    TABLE,
    "one group, or as many groups as channels",
)
DILATED = Cause("the layer knows no dilation", TABLE, "a kernel without dilation")
OUTPUT_PADDING = Cause(
    "Snap's table does not say whether it goes",
    TABLE,
    "try it in Lens Studio, or use kernel 2, stride 2, which needs none",
    "note",
)
OPSET = Cause(
    "the released models are of opset 9, and Snap names no range that is known here",
    RELEASED,
    "should Lens Studio refuse the file: distill.export exporter.opset=9",
    "note",
)
FRAMES = Cause(
    "Snap asks for more than 15 FPS on most devices and advises 30: 67 and 33 ms a frame for the "
    "whole lens, camera and drawing included",
    'Snap, Lens Studio documentation, "Performance and Optimization for Lenses" (read 2026-11)',
    "measure it on phones, docs/phones.md says how",
    "note",
)


def small(graph: Graph) -> Iterator[Finding]:
    """The size in bytes of the file and all that belongs to it."""
    if graph.size > LIMIT:
        yield LARGE.at(None, f"{graph.size:,} bytes, {LIMIT:,} allowed", "file")


def nearest(graph: Graph) -> Iterator[Finding]:
    """Enlarging in a way that no released model does."""
    for node in graph.of("Resize", "Upsample"):
        mode = node.get("mode", "nearest")
        if mode != "nearest":
            yield NEAREST.at(node, f"{node.operator} in mode {mode}, only nearest is known to go")


def axes(graph: Graph) -> Iterator[Finding]:
    """Concat along batch and channels, ArgMax and ArgMin along channels."""
    allowed = {"Concat": (0, 1, -3, -4), "ArgMax": (1, -3), "ArgMin": (1, -3)}
    for node in graph.of(*allowed):
        axis = node.get("axis", 0)
        if axis not in allowed[node.operator]:
            yield AXIS.at(node, f"along axis {axis}")


def grouping(graph: Graph) -> Iterator[Finding]:
    """Groups are 1 (plain) or as many as channels (depthwise), nothing between."""
    for node in graph.of(*operators.CHANNELS):
        group, channels = node.get("group", 1), operators.incoming(graph, node)
        if group != 1 and group != channels:
            of = f" of {counted(channels, 'channel')}" if channels else ""
            yield GROUPS.at(node, f"{counted(group, 'group')}{of}: neither plain nor depthwise")


@shared.by_table
def transposed(graph: Graph, name: str, plain: int, cause: Cause) -> Iterator[Finding]:
    """Transposed convolutions in which an attribute is not the `plain` number in all directions."""
    for node in graph.of("ConvTranspose"):
        if any(value != plain for value in node.get(name, [])):
            yield cause.at(node, f"{name} {node.get(name, [])}")


def off_npu(graph: Graph) -> Iterator[Finding]:
    """Layers that the table has, but not for the iPhone's NPU."""
    for node in graph.of(*OFF_NPU):
        yield NPU.at(node, f"{node.operator} is not on the iPhone's NPU{OFF_NPU[node.operator]}")


def constant_operands(graph: Graph) -> Iterator[Finding]:
    """Constants that a picture is added to or multiplied by; parameters of a Resize are none."""
    makers = {name: node for node in graph.nodes for name in node.outputs}
    last: list[Node] = []  # behind which no other operator comes
    waiting = [tensor.name for tensor in graph.outputs]
    while waiting:
        node = makers.get(waiting.pop())
        if node is not None and node.operator in PASSING and node not in last:
            last.append(node)
            waiting += node.inputs
    for node in graph.of(*ELEMENTWISE):
        if any(name in graph.constants for name in node.inputs):
            where = "the network's last step" if node in last else "a step"
            yield CONSTANT.at(node, f"{where} is with a constant")


def opset(graph: Graph) -> Iterator[Finding]:
    if graph.opset != 9:
        yield OPSET.at(None, f"opset {graph.opset}", "file")


PROFILE = Profile(
    "snapml",
    "SnapML in Snapchat (Lens Studio)",
    (
        *shared.EVERYWHERE,
        shared.fixed(RELEASED, "the released models have fixed sizes, and no other is known to go"),
        small,
        operators.known(OPERATORS, OUTSIDE, BETTER),
        nearest,
        axes,
        grouping,
        operators.square("Conv", ("strides", "dilations"), TABLE),
        operators.small_padding("Conv", TABLE),
        operators.square("ConvTranspose", ("strides", "pads", "kernel_shape"), TABLE),
        operators.small_padding("ConvTranspose", TABLE),
        transposed("dilations", 1, DILATED),
        transposed("output_padding", 0, OUTPUT_PADDING),
        off_npu,
        constant_operands,
        shared.subnormal,
        opset,
        shared.always(FRAMES, "the frame rate is not known before a phone has run it"),
    ),
)
