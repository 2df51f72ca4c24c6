"""Rules about convolutions and transposed convolutions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from distill.check.finding import Cause, Finding, Rule
from distill.check.onnx_graph import Graph, Node

CHANNELS = {"Conv": 1, "ConvTranspose": 0}  # where a weight's shape has the channels that go in


def grouping(source: str) -> Rule:
    """Groups are 1 (plain) or as many as channels (depthwise), nothing between."""
    cause = Cause(
        "Android GPUs take plain and depthwise convolutions only",
        source,
        "one group, or as many groups as channels",
    )

    def rule(graph: Graph) -> Iterator[Finding]:
        for node in graph.of(*CHANNELS):
            group, channels = node.get("group", 1), incoming(graph, node)
            if group != 1 and group != channels:
                of = f" of {channels} channels" if channels else ""
                yield cause.at(node, f"{group} groups{of}: neither plain nor depthwise")

    return rule


def incoming(graph: Graph, node: Node) -> int | None:
    """Channels that go into a convolution, by its weight's shape; None where that is not known."""
    shape = graph.weight_shape(node)
    if shape is None or len(shape) < 2:
        return None
    count = shape[CHANNELS[node.operator]]
    if count is None or node.operator == "ConvTranspose":
        return count
    return count * node.get("group", 1)


def square(operator: str, names: tuple[str, ...], source: str) -> Rule:
    """The same stride, dilation, padding or kernel in height and width, as `names` say."""
    cause = Cause("the layer has one number for both directions", source, "make both alike")

    def rule(graph: Graph) -> Iterator[Finding]:
        for node in graph.of(operator):
            for name in names:
                values = _values(graph, node, name)
                if len(set(values)) > 1:
                    yield cause.at(node, f"{name} {values}: not the same in height and width")

    return rule


def small_padding(operator: str, source: str) -> Rule:
    """No padding wider than the kernel."""
    cause = Cause("the layer does not exist on CPU and GPU", source, "pad less, or in a Pad before")

    def rule(graph: Graph) -> Iterator[Finding]:
        for node in graph.of(operator):
            pads, kernel = _values(graph, node, "pads"), _values(graph, node, "kernel_shape")
            if kernel and max(pads, default=0) > min(kernel):
                yield cause.at(node, f"pads {pads} wider than its kernel {kernel}")

    return rule


def undilated(operator: str, source: str) -> Rule:
    """No dilation."""
    cause = Cause("the layer knows no dilation", source, "a kernel without dilation")

    def rule(graph: Graph) -> Iterator[Finding]:
        for node in graph.of(operator):
            if any(value != 1 for value in node.get("dilations", [])):
                yield cause.at(node, f"dilations {node.get('dilations', [])}")

    return rule


def two_dimensional(source: str, ranks: tuple[int, ...] = (4,)) -> Rule:
    """Weights of a rank that the device has convolutions for: 4 for pictures."""
    cause = Cause("the device has no such convolution", source, "convolutions of pictures only")

    def rule(graph: Graph) -> Iterator[Finding]:
        for node in graph.of(*CHANNELS):
            shape = graph.weight_shape(node)
            if shape is not None and len(shape) not in ranks:
                yield cause.at(node, f"{len(shape) - 2} dimensions instead of 2")

    return rule


def _values(graph: Graph, node: Node, name: str) -> list[Any]:
    """An attribute; the kernel from the weight where it is not said."""
    values = list(node.get(name, []))
    if name == "kernel_shape" and not values:
        values = list((graph.weight_shape(node) or ())[2:])
    return values
