from collections.abc import Callable, Sequence

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from distill.core.errors import DistillError
from distill.export.onnx import OnnxExporter
from distill.metrics.complexity import (
    graph_macs,
    graph_parameters,
    module_macs,
    operators,
    parameters,
    thop_macs,
)
from distill_gan.generators.resnet import ResNetGenerator
from distill_gan.generators.unet import UNet

Shape = Sequence[int | str]


def graph(
    nodes: Sequence[onnx.NodeProto], weights: dict[str, Shape], takes: Shape, gives: Shape
) -> onnx.ModelProto:
    tensors = [numpy_helper.from_array(np.ones(s, np.float32), n) for n, s in weights.items()]
    model = helper.make_model(
        helper.make_graph(
            nodes,
            "tiny",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, takes)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, gives)],
            tensors,
        ),
        opset_imports=[helper.make_opsetid("", 13)],
        ir_version=8,
    )
    onnx.checker.check_model(model)
    return model


def conv(source: str, weight: str, target: str, kind: str = "Conv", **kwargs: object):
    return helper.make_node(kind, [source, weight], [target], **kwargs)


SAME = {"pads": [1, 1, 1, 1]}
GRAPHS = {
    # 16×16 outputs × 8 channels × (3 channels × 3×3)
    "conv": (
        [conv("x", "w", "y", **SAME)],
        {"w": (8, 3, 3, 3)},
        (1, 3, 16, 16),
        (1, 8, 16, 16),
        16 * 16 * 8 * 3 * 9,
    ),
    # half the side by stride 2
    "strided": (
        [conv("x", "w", "y", strides=[2, 2], **SAME)],
        {"w": (8, 3, 3, 3)},
        (1, 3, 16, 16),
        (1, 8, 8, 8),
        8 * 8 * 8 * 3 * 9,
    ),
    # every channel meets one 5×5 only
    "depthwise": (
        [conv("x", "w", "y", group=6, pads=[2, 2, 2, 2])],
        {"w": (6, 1, 5, 5)},
        (1, 6, 10, 12),
        (1, 6, 10, 12),
        10 * 12 * 6 * 25,
    ),
    # each of the 7×7 inputs × 4 channels is spread over 5 channels × 2×2
    "transposed": (
        [conv("x", "w", "y", "ConvTranspose", strides=[2, 2])],
        {"w": (4, 5, 2, 2)},
        (1, 4, 7, 7),
        (1, 5, 14, 14),
        7 * 7 * 4 * 5 * 4,
    ),
    "gemm": (
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)],
        {"w": (10, 20), "b": (10,)},
        (3, 20),
        (3, 10),
        3 * 20 * 10,
    ),
    "matmul": (
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        {"w": (20, 10)},
        (2, 3, 20),
        (2, 3, 10),
        2 * 3 * 20 * 10,
    ),
    # shapes in between are inferred; what multiplies nothing costs nothing
    "chain": (
        [
            conv("x", "a", "p", **SAME),
            helper.make_node("Relu", ["p"], ["q"]),
            conv("q", "b", "r"),
            helper.make_node("Sigmoid", ["r"], ["y"]),
        ],
        {"a": (4, 3, 3, 3), "b": (2, 4, 1, 1)},
        (1, 3, 8, 8),
        (1, 2, 8, 8),
        64 * 4 * 27 + 64 * 2 * 4,
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graph_macs_by_hand(name):
    nodes, weights, takes, gives, expected = GRAPHS[name]
    assert graph_macs(graph(nodes, weights, takes, gives)) == expected


def test_a_graph_with_a_shape_that_is_not_known_has_no_number():
    product = helper.make_node("MatMul", ["x", "w"], ["y"])
    model = graph([product], {"w": (3, 4)}, (2, 3), (2, 4))
    model.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(DistillError, match=r"^MACs: the shape of x is not static"):
        graph_macs(model)


def test_a_dynamic_graph_has_no_number():
    shape = ("n", 3, "h", "w")
    model = graph([conv("x", "w", "y", **SAME)], {"w": (3, 3, 3, 3)}, shape, shape)
    with pytest.raises(DistillError, match="the shape of y is not static"):
        graph_macs(model)


def test_graph_parameters_and_operators():
    model = graph(*GRAPHS["chain"][:4])
    assert operators(model) == ["Conv", "Relu", "Sigmoid"]
    assert graph_parameters(model) == 4 * 27 + 8
    # A lone value is a setting of an operator and no weight.
    model.graph.initializer.append(numpy_helper.from_array(np.float32(2.0), "scale"))
    assert graph_parameters(model) == 4 * 27 + 8


def test_module_macs_by_hand():
    network = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1, groups=8)
    )
    assert module_macs(network, 16) == 16 * 16 * 8 * 27 + 8 * 8 * 8 * 9
    assert module_macs(nn.Conv2d(4, 2, 1), 10, channels=4) == 100 * 8
    assert module_macs(nn.ReLU(), 16) is None


def test_parameters():
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 1, 1, bias=False))
    assert parameters(network) == 3 * 8 * 9 + 8 + 2 * 8 + 8


def test_thop_counts_and_leaves_nothing_behind():
    """thop counts a convolution as we do, and adds two for every value of BatchNorm."""
    network = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)).train()
    before = list(network.state_dict())
    macs = thop_macs(network, 16)
    assert macs - 16 * 16 * 8 * 27 in (8 * 256, 2 * 8 * 256, 4 * 8 * 256)
    assert list(network.state_dict()) == before
    assert network.training
    assert torch.equal(network[1].running_mean, torch.zeros(8))


def test_as_published_a_transposed_convolution_counts_at_its_output():
    nodes, weights, takes, gives, macs = GRAPHS["transposed"]
    model = graph(nodes, weights, takes, gives)
    assert graph_macs(model, published=True) == 4 * macs  # stride 2: four places for one
    plain = graph(*GRAPHS["strided"][:4])
    assert graph_macs(plain, published=True) == graph_macs(plain)


def of_zeros(make: Callable[[], nn.Module]) -> nn.Module:
    """A network with no time spent on random weights: they do not matter here."""
    with torch.device("meta"):
        network = make()
    network = network.to_empty(device="cpu").eval()
    for tensor in (*network.parameters(), *network.buffers()):
        tensor.data.zero_()
    return network


# Convolutions of CycleGAN's generator by hand: 7×7 at both ends, two of stride 2, two blocks'
# convolutions of 256 channels each at 64², and two transposed ones, at their inputs' size.
ENDS = 2 * 256**2 * 64 * 3 * 49 + 128**2 * 128 * 64 * 9 + 64**2 * 256 * 128 * 9
BLOCK, HALVES = 2 * 64**2 * 256 * 256 * 9, 64**2 * 256 * 128 * 9 + 128**2 * 128 * 64 * 9


@pytest.mark.parametrize(
    ("blocks", "count", "giga"), [(9, 11_378_179, 49.55), (6, 7_837_699, 35.06)]
)
@pytest.mark.campaign
def test_cyclegans_generator_as_it_is_exported(blocks, count, giga):
    network = of_zeros(lambda: ResNetGenerator(blocks))
    model = OnnxExporter(size=256, profile="cyclegan").export(network)
    assert parameters(network) == count
    assert graph_macs(model) == ENDS + blocks * BLOCK + HALVES
    assert graph_macs(model) / 1e9 == pytest.approx(giga, abs=0.005)
    published = graph_macs(model, published=True)
    assert published == ENDS + blocks * BLOCK + 4 * HALVES
    if blocks == 9:
        assert published / 1e9 == pytest.approx(56.8, abs=0.005)  # GAN Compression, table 1


@pytest.mark.campaign
def test_the_unet_of_the_paper_as_it_is_exported():
    network = of_zeros(lambda: UNet(256, upsampling="transposed"))
    model = OnnxExporter(size=256, profile="any").export(network)
    assert parameters(network) == 54_414_531
    assert graph_macs(model) / 1e9 == pytest.approx(6.05, abs=0.005)
    assert graph_macs(model) == module_macs(network.eval(), 256)


def test_a_scalar_is_no_weight_and_two_values_are():
    sizes: dict[str, Shape] = {"one": [1], "two": [2], "three": [3]}
    joined = helper.make_node("Concat", [*sizes], ["y"], axis=0)
    assert graph_parameters(graph([joined], sizes, [6], [6])) == 5
