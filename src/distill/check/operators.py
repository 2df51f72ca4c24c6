"""Rules about single operators, made from a device's table."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from distill.check.onnx_graph import STANDARD, Graph, Node
from distill.check.shared import Cause, Finding, by_table

RESIZE_MODES = ("nearest", "linear")
CHANNELS = {"Conv": 1, "ConvTranspose": 0}  # where a weight's shape has the channels that go in


def names(table: str) -> frozenset[str]:
    """A device's table of operators, written as words."""
    return frozenset(table.split())


def full_name(node: Node) -> str:
    """As in ONNX Runtime's tables: domain:operator where the domain is not ONNX's own."""
    return node.operator if node.domain in STANDARD else f"{node.domain}:{node.operator}"


# What ONNX Runtime's providers for phones both ask for, and what to do about an old operator.
PLANAR = dict.fromkeys(
    ("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"), "it is of two dimensions"
)
UPSAMPLE = {"Upsample": "export with opset 11 or newer, where it is Resize: exporter.opset=11"}
# What computes a student's statistics of the whole picture (export/graph/operator_gate.py).
SUMMARY_FILE = (
    "export with exporter.profile=strict: NAME_summary.onnx, which the app runs, computes it"
)
NO_PADDING = "of a student: choose an exporter.size that 32 divides; else export without it"


@by_table
def known(
    graph: Graph, allowed: Collection[str], cause: Cause, advice: Mapping[str, str] | None = None
) -> Iterator[Finding]:
    """Operators outside of `allowed`; `advice` has better words for some of them."""
    for node in graph.nodes:
        name = full_name(node)
        if name not in allowed:
            other = (advice or {}).get(name)
            words = Cause(cause.why, cause.source, other or cause.advice, cause.level)
            yield words.at(node, f"{name} is not in the profile")


@by_table
def conditional(graph: Graph, conditions: Mapping[str, str], source: str) -> Iterator[Finding]:
    """Notes on operators that a device takes under conditions that no rule here looks at."""
    for node in graph.nodes:
        if condition := conditions.get(full_name(node)):
            cause = Cause(
                "not looked at here; otherwise the CPU takes over at this node",
                source,
                "see that it holds",
                "note",
            )
            yield cause.at(node, f"taken only if: {condition}")


@by_table
def fixed_inputs(
    graph: Graph, operator: str, which: Mapping[int, str], source: str
) -> Iterator[Finding]:
    """Inputs that must be constants, by their position and name (weight, bias, pads)."""
    cause = Cause(
        "the device takes these values when it builds its network, not at every picture",
        source,
        "export with constants folded, or from a network whose weights are not computed",
    )
    for node in graph.of(operator):
        for index, name in which.items():
            tensor = node.inputs[index] if index < len(node.inputs) else ""
            if tensor and tensor not in graph.constants:
                yield cause.at(node, f"its {name} is computed, not a constant")


@by_table
def attribute(
    graph: Graph,
    operator: str,
    name: str,
    default: object,
    allowed: Collection[object],
    cause: Cause,
) -> Iterator[Finding]:
    """An attribute with one of few values; `default` is ONNX's own."""
    choices = " or ".join(map(str, allowed))
    for node in graph.of(operator):
        value = node.get(name, default)
        if value not in allowed:
            yield cause.at(node, f"{name} {value}, only {choices} goes")


@by_table
def resize(graph: Graph, source: str, strict_nearest: bool) -> Iterator[Finding]:
    """Resize from opset 11 on, by constant scales; nearest in the manner of phones where strict."""
    cause = Cause(
        "another way of enlarging gives other pixels, so the device leaves it to the CPU",
        source,
        "nearest ×2, asymmetric and floor: what torch.nn.functional.interpolate exports to",
    )
    antialiased = Cause(
        "smaller pictures come out with other pixels without it", source, SUMMARY_FILE
    )
    for node in graph.of("Resize"):
        if node.get("antialias", 0):
            yield antialiased.at(node, "antialiased: the thumbnail of the whole picture")
            continue
        mode = node.get("mode", "nearest")
        manner = node.get("coordinate_transformation_mode", "half_pixel")
        ways = manner, node.get("nearest_mode", "round_prefer_floor")
        if graph.opset < 11:
            yield cause.at(node, f"Resize of opset {graph.opset}, 11 or newer wanted")
        elif mode not in RESIZE_MODES:
            yield cause.at(node, f"mode {mode}, only {' or '.join(RESIZE_MODES)} goes")
        elif strict_nearest and mode == "nearest" and ways != ("asymmetric", "floor"):
            yield cause.at(node, f"nearest as {', '.join(ways)}; asymmetric, floor wanted")
        elif not all(name in graph.constants for name in node.inputs[2:] if name):
            yield cause.at(node, "its scales or sizes are computed, not constants")


def incoming(graph: Graph, node: Node) -> int | None:
    """Channels that go into a convolution, by its weight's shape; None where that is not known."""
    shape = graph.weight_shape(node)
    if shape is None or len(shape) < 2:
        return None
    count = shape[CHANNELS[node.operator]]
    if count is None or node.operator == "ConvTranspose":
        return count
    return count * node.get("group", 1)


@by_table
def square(graph: Graph, operator: str, names: tuple[str, ...], source: str) -> Iterator[Finding]:
    """The same stride, dilation, padding or kernel in height and width, as `names` say."""
    cause = Cause("the layer has one number for both directions", source, "make both alike")
    for node in graph.of(operator):
        for name in names:
            values = _values(graph, node, name)
            if len(set(values)) > 1:
                yield cause.at(node, f"{name} {values}: not the same in height and width")


@by_table
def small_padding(graph: Graph, operator: str, source: str) -> Iterator[Finding]:
    """No padding wider than the kernel."""
    cause = Cause("the layer does not exist on CPU and GPU", source, "pad less, or in a Pad before")
    for node in graph.of(operator):
        pads, kernel = _values(graph, node, "pads"), _values(graph, node, "kernel_shape")
        if kernel and max(pads, default=0) > min(kernel):
            yield cause.at(node, f"pads {pads} wider than its kernel {kernel}")


@by_table
def two_dimensional(graph: Graph, source: str, ranks: tuple[int, ...] = (4,)) -> Iterator[Finding]:
    """Weights of a rank that the device has convolutions for: 4 for pictures."""
    cause = Cause("the device has no such convolution", source, "convolutions of pictures only")
    for node in graph.of(*CHANNELS):
        shape = graph.weight_shape(node)
        if shape is not None and len(shape) not in ranks:
            yield cause.at(node, f"{len(shape) - 2} dimensions instead of 2")


def _values(graph: Graph, node: Node, name: str) -> list[Any]:
    """An attribute; the kernel from the weight where it is not said."""
    values = list(node.get(name, []))
    if name == "kernel_shape" and not values:
        values = list((graph.weight_shape(node) or ())[2:])
    return values
