"""A network and its traced graph in plain operators, without changing the output."""

from copy import deepcopy
from typing import TypeGuard

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper
from torch import Tensor, nn

from distill.models.students.heads import Channels, Mixture


class SigmoidMixture(nn.Module):
    """What `Mixture` computes, of 1×1 convolutions, ReLU, sigmoids and divisions.

    exp(d) = σ(d) / σ(−d), and of d = z − max z none overflows. The same but for rounding.
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        rows = torch.eye(count)[:, None, :, None, None]
        self.each = nn.ModuleList(_pointwise(row[..., 0, 0]) for row in rows)
        self.sum = _pointwise(torch.ones(1, count))

    def forward(self, logits: Tensor, inks: Tensor) -> Tensor:
        first, *others = self.each
        most = first(logits)
        for other in others:
            most = most + torch.relu(other(logits) + -1.0 * most)
        below = logits + -1.0 * most
        exponential = torch.sigmoid(below) / torch.sigmoid(-1.0 * below)
        return F.conv2d(exponential / self.sum(exponential), inks.T[..., None, None])


class Patches(nn.Module):
    """What nn.ConvTranspose2d(…, 2, 2) computes, from 1×1 convolutions, nearest ×2 and two masks.

    Pixel (r, c) of a patch is W₀₀ + c (W₀₁ − W₀₀) + r (W₁₀ − W₀₀) + rc (W₁₁ − W₁₀ − W₀₁ + W₀₀)
    applied to the pixel below it: four 1×1 convolutions where the picture is small, doubled, and
    multiplied by a row and a column of zeros and ones. The same function but for rounding. In a
    traced graph the masks have the length that they were traced with.
    """

    def __init__(self, layer: nn.ConvTranspose2d) -> None:
        super().__init__()
        weights = layer.weight.detach().transpose(0, 1)
        a, b, c, d = (weights[..., i, j] for i in (0, 1) for j in (0, 1))
        self.base, self.right = _pointwise(a, layer.bias), _pointwise(b - a)
        self.below, self.both = _pointwise(c - a), _pointwise(d - c - b + a)

    def forward(self, x: Tensor) -> Tensor:
        # 0, 1, 0, 1 …, constants of the graph, since NumPy is not traced.
        patch = np.array([0.0, 1.0], np.float32)
        row, column = (torch.from_numpy(np.tile(patch, int(n))).to(x) for n in x.shape[-2:])
        row = row.view(1, 1, -1, 1)
        below = _double(self.below(x)) + column * _double(self.both(x))
        return _double(self.base(x)) + column * _double(self.right(x)) + row * below


def in_strict_operators(network: nn.Module, transposed: bool = True) -> nn.Module:
    """A copy whose head has neither exponentials nor slices, and which, if `transposed`, has no
    transposed convolutions of 2×2 with stride 2 either; others stay as they are."""
    copy = deepcopy(network)
    for module in list(copy.modules()):
        for name, child in list(module.named_children()):
            if transposed and doubles(child):
                setattr(module, name, Patches(child))
            elif isinstance(child, Mixture):
                setattr(module, name, SigmoidMixture(child.count))
            elif isinstance(child, Channels):
                setattr(module, name, _pointwise(torch.eye(child.count)[child.start : child.stop]))
    return copy.eval()


def doubles(layer: nn.Module) -> TypeGuard[nn.ConvTranspose2d]:
    """Whether it is a transposed convolution in which every input pixel becomes a 2×2 patch."""
    if not isinstance(layer, nn.ConvTranspose2d) or any((*layer.padding, *layer.output_padding)):
        return False
    two = layer.kernel_size == layer.stride == (2, 2)
    return two and layer.dilation == (1, 1) and layer.groups == 1


def _pointwise(weight: Tensor, bias: Tensor | None = None) -> nn.Conv2d:
    layer = nn.Conv2d(weight.shape[1], weight.shape[0], 1, bias=bias is not None)
    with torch.no_grad():
        layer.weight.copy_(weight[..., None, None])
        if bias is not None:
            assert layer.bias is not None
            layer.bias.copy_(bias)
    return layer


def _double(x: Tensor) -> Tensor:
    return F.interpolate(x, scale_factor=2.0, mode="nearest")


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
    # Large ones too; and by inference of shapes what a static graph's sizes are computed from.
    optimizer.fold_constants(plain, onnx_shape_inference=True, should_fold=lambda _: True)
    common.ClearMetadataAndDocStringPass()(plain)
    model.CopyFrom(onnx_ir.to_proto(plain))
    model.doc_string = ""
    del model.metadata_props[:], model.graph.value_info[:]  # the latter is what folding inferred
    store_constants(model.graph)
    plain_arithmetic(model.graph)
    store_norms(model.graph)
    drop_unread(model.graph)


def store_constants(graph: onnx.GraphProto) -> None:
    """The whole numbers of a Constant as a tensor: folding writes a form of opset 12."""
    for attribute in (node.attribute[0] for node in graph.node if node.op_type == "Constant"):
        if attribute.name in ("value_int", "value_ints"):
            numbers = np.asarray(helper.get_attribute_value(attribute), np.int64)
            tensor = numpy_helper.from_array(numbers)
            attribute.CopyFrom(helper.make_attribute("value", tensor))


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
    inputs = {
        n for node in graph.node if node.op_type == "InstanceNormalization" for n in node.input
    }
    constants = [n for n in graph.node if n.op_type == "Constant" and n.output[0] in inputs]
    for node in constants:
        tensor = graph.initializer.add()
        tensor.CopyFrom(node.attribute[0].t)
        tensor.name = node.output[0]
        graph.node.remove(node)


def drop_unread(graph: onnx.GraphProto) -> None:
    """Constants and weights that no node reads any more."""
    inputs = {name for node in graph.node for name in node.input}
    inputs |= {value.name for value in graph.output}
    for node in list(graph.node):
        if node.op_type == "Constant" and node.output[0] not in inputs:
            graph.node.remove(node)
    for tensor in list(graph.initializer):
        if tensor.name not in inputs:
            graph.initializer.remove(tensor)
