"""Rewrites an exported graph in the operators that XNNPACK has and is fast at; the same values."""

from collections.abc import Callable
from itertools import count, product
from operator import attrgetter
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx

ATEN = torch.ops.aten
# Of a transposed convolution: padding, output padding, groups, dilation.
PLAIN = ([0, 0], [0, 0], 1, [1, 1])
BY_PIXEL = {
    *(ATEN.add.Tensor, ATEN.sub.Tensor, ATEN.mul.Tensor, ATEN.div.Tensor),
    *(ATEN.sigmoid.default, ATEN.tanh.default, ATEN.relu.default, ATEN.slice.Tensor),
}


def in_xnnpack(module: fx.GraphModule) -> fx.GraphModule:
    """The graph with other operators for nearest neighbour, the last layer, wide depthwise kernels.

    It holds what it uses: of buffers that nothing uses ExecuTorch says that a lifted tensor's spec
    is missing.
    """
    _fold_constants(module)
    planes = set[fx.Node]()
    for node in list(module.graph.nodes):
        if node.target not in REWRITES:
            continue
        with module.graph.inserting_before(node):
            y = REWRITES[node.target](module, node)
        if y is not None:
            node.replace_all_uses_with(y)
            y.meta = node.meta
            module.graph.erase_node(node)
            if node.target is ATEN.conv_transpose2d.input:
                planes.add(y)
    _keep_planes(module.graph, planes)
    module.graph.eliminate_dead_code()
    return fx.GraphModule(module, module.graph)


def _fold_constants(module: fx.GraphModule) -> None:
    """Computes what depends on nothing but weights: XNNPACK takes no computed ones."""
    for node in list(module.graph.nodes):
        inputs = node.all_input_nodes
        if node.op == "call_function" and inputs and all(each.op == "get_attr" for each in inputs):
            arguments = fx.map_arg(
                node.args, lambda each: attrgetter(str(each.target))(module).detach()
            )
            with module.graph.inserting_before(node):
                value = constant(module, node.target(*arguments, **node.kwargs))
            value.meta = node.meta
            node.replace_all_uses_with(value)
            module.graph.erase_node(node)


def _nearest(module: fx.GraphModule, node: fx.Node) -> fx.Node | None:
    """Pixels times ones, broadcast to patches, with channels last, as XNNPACK keeps them."""
    call, x = module.graph.call_function, node.all_input_nodes[0]
    count, channels, height, width = x.meta["val"].shape
    *_, high, wide = node.meta["val"].shape
    rows, columns = high // height, wide // width
    if (high, wide) != (height * rows, width * columns):
        return None
    ones = constant(module, torch.ones(1, rows, 1, columns, 1))
    y = call(ATEN.permute.default, (x, [0, 2, 3, 1]))
    y = call(ATEN.reshape.default, (y, [count * height, 1, width, 1, channels]))
    y = call(ATEN.mul.Tensor, (y, ones))
    y = call(ATEN.reshape.default, (y, [count, high, wide, channels]))
    return call(ATEN.permute.default, (y, [0, 3, 1, 2]))


def _patches(module: fx.GraphModule, node: fx.Node) -> fx.Node | None:
    """A transposed convolution without overlap: 1×1, whose channels are then put in place.

    It takes XNNPACK less time. The result is (N, C, H·W), for `_keep_planes`.
    """
    call, x = module.graph.call_function, node.all_input_nodes[0]
    weight, bias = _parameters(module, node)
    stated = len(node.args) - 3  # stride, and what is PLAIN
    if weight is None or stated < 1 or node.args[3:] != ([*weight.shape[2:]], *PLAIN)[:stated]:
        return None
    rows, columns = weight.shape[2:]
    count, channels, height, width = x.meta["val"].shape
    outputs = weight.shape[1]
    kernel = weight.permute(1, 2, 3, 0).reshape(-1, channels, 1, 1)
    offset = (torch.zeros(outputs) if bias is None else bias).repeat_interleave(rows * columns)
    y = call(ATEN.conv2d.default, (x, constant(module, kernel), constant(module, offset)))
    y = call(ATEN.reshape.default, (y, [count, outputs, rows, columns, height, width]))
    y = call(ATEN.permute.default, (y, [0, 1, 4, 2, 5, 3]))
    return call(ATEN.reshape.default, (y, [count, outputs, rows * columns * height * width]))


def _quarters(module: fx.GraphModule, node: fx.Node) -> fx.Node | None:
    """A depthwise 7×7 or 9×9 as a sum of four of its quarters: XNNPACK is fast up to 5×5."""
    call, x = module.graph.call_function, node.all_input_nodes[0]
    weight, bias = _parameters(module, node)
    if weight is None or weight.shape[1] != 1 or weight.shape[2:] not in ((7, 7), (9, 9)):
        return None
    channels, pad, total = len(weight), weight.shape[-1] // 2, None
    if node.args[3:] != ([1, 1], [pad, pad], [1, 1], channels):
        return None
    for upper, left in product((1, 0), repeat=2):  # the middle row and column are theirs
        part = weight[:, :, : pad + 1] if upper else F.pad(weight[:, :, pad + 1 :], (0, 0, 1, 0))
        part = part[..., : pad + 1] if left else F.pad(part[..., pad + 1 :], (1, 0))
        sides = [pad * left, pad * (1 - left), pad * upper, pad * (1 - upper)]
        y = call(ATEN.constant_pad_nd.default, (x, sides))
        offset = None if total or bias is None else constant(module, bias)
        once = ([1, 1], [0, 0], [1, 1], channels)
        y = call(ATEN.conv2d.default, (y, constant(module, part), offset, *once))
        total = call(ATEN.add.Tensor, (total, y)) if total else y
    return total


def _keep_planes(graph: fx.Graph, planes: set[fx.Node]) -> None:
    """Has what follows the nodes `planes`, (N, C, H·W), pixel by pixel, work on that shape too.

    Of (N, C, H, W) XNNPACK keeps the channels last, and with few of them a slice, or a number for
    each, takes it ten times longer. `val` of a node stays what it was in four dimensions.
    """
    for node in list(graph.nodes):
        inputs = node.all_input_nodes
        if planes.isdisjoint(inputs):
            continue
        by_pixel = _by_pixel(node, planes)
        for each in inputs:
            sides = tuple(each.meta["val"].shape)
            if sides and (each in planes) != by_pixel:
                shape = (*sides[:2], -1) if by_pixel else sides
                with graph.inserting_before(node):
                    y = graph.call_function(ATEN.reshape.default, (each, [*shape]))
                node.replace_input_with(each, y)
        if by_pixel:
            planes.add(node)


def _by_pixel(node: fx.Node, planes: set[fx.Node]) -> bool:
    """Whether a node works on each pixel, with others, numbers for each channel, or one number."""
    if node.target not in BY_PIXEL or (node.target is ATEN.slice.Tensor and node.args[1] != 1):
        return False
    others = [tuple(each.meta["val"].shape) for each in node.all_input_nodes if each not in planes]
    sides = ((1, 1), tuple(node.meta["val"].shape[2:]))
    return all(not shape or (len(shape) == 4 and shape[2:] in sides) for shape in others)


def _parameters(module: fx.GraphModule, node: fx.Node) -> tuple[Tensor | None, Tensor | None]:
    """Weight and bias of a convolution; without a weight where one of them is computed."""
    nodes: list[Any] = [*node.args, None][1:3]
    if any(each is not None and each.op != "get_attr" for each in nodes):
        return None, None
    weight, bias = (each and attrgetter(each.target)(module).detach() for each in nodes)
    return weight, bias


def constant(module: fx.GraphModule, value: Tensor) -> fx.Node:
    """A node for a tensor that the graph holds, where its next nodes are inserted."""
    names = (f"_rewritten_{number}" for number in count())
    name = next(each for each in names if not hasattr(module, each))
    module.register_buffer(name, value.contiguous())
    return module.graph.get_attr(name)


REWRITES: dict[Any, Callable[[fx.GraphModule, fx.Node], fx.Node | None]] = {
    ATEN.upsample_nearest2d.vec: _nearest,
    ATEN.conv_transpose2d.input: _patches,
    ATEN.conv2d.default: _quarters,
}
