from __future__ import annotations

import onnx
import pytest
import torch
from onnx import helper, numpy_helper
from torch import nn

from distill.metrics.nonzero_weights import (
    dead_channel_share,
    graph_nonzero_weight_share,
    nonzero_weight_share,
    subnormal_share,
)


def network(*weights: list[list[float]]) -> nn.Module:
    """1×1 convolutions with these weights, one row per output channel, and a norm in between."""
    layers = []
    for rows in weights:
        values = torch.tensor(rows)
        conv = nn.Conv2d(values.shape[1], values.shape[0], 1)
        conv.weight.data = values[:, :, None, None]
        layers += [conv, nn.ReLU()]
    return nn.Sequential(*layers)


# Layer one: 1e-3 of the largest is 2e-3. Layer two is a million times weaker, and as alive.
MIXED = network(
    [[2.0, -1.0, 1e-3], [0.0, 1e-4, -1e-5], [2.1e-3, 0.0, 0.0]],
    [[2e-6, -1e-6, 1e-10]],
)


def test_nonzero_weights() -> None:
    """2, -1 and 2.1e-3 of nine, 2e-6 and -1e-6 of three."""
    assert nonzero_weight_share(MIXED) == pytest.approx(5 / 12)


def test_dead_channels() -> None:
    """The middle channel of the first layer; one of four."""
    assert dead_channel_share(MIXED) == pytest.approx(1 / 4)


def test_extremes() -> None:
    assert nonzero_weight_share(network([[1.0, -1.0]])) == 1
    assert dead_channel_share(network([[1.0, -1.0]])) == 0
    nothing = network([[0.0, 0.0], [0.0, 0.0]])
    assert nonzero_weight_share(nothing) == 0
    assert dead_channel_share(nothing) == 1


def test_a_dead_layer_beside_a_living_one() -> None:
    half = network([[1.0], [1.0]], [[0.0, 0.0], [0.0, 0.0]])
    assert nonzero_weight_share(half) == pytest.approx(2 / 6)
    assert dead_channel_share(half) == pytest.approx(2 / 4)


def test_subnormal_weights() -> None:
    """Below 1.18e-38 but not zero; zero costs nothing, 1.2e-38 is still normal."""
    assert subnormal_share(network([[1e-39, -1e-40, 0.0, 1.2e-38, 1.0]])) == pytest.approx(2 / 5)
    assert subnormal_share(MIXED) == 0


def test_transposed_convolutions_count_too() -> None:
    """Their weights lie input first: two inputs to two outputs, of which the second is dead."""
    conv = nn.ConvTranspose2d(2, 2, 1)
    conv.weight.data = torch.tensor([[1.0, 0.0], [0.5, 1e-5]])[:, :, None, None]
    assert nonzero_weight_share(conv) == pytest.approx(2 / 4)
    assert dead_channel_share(conv) == pytest.approx(1 / 2)


def test_groups_of_a_transposed_convolution_have_outputs_of_their_own() -> None:
    """Two groups of two inputs and one output each; the second group's is dead."""
    conv = nn.ConvTranspose2d(4, 2, 1, groups=2)
    conv.weight.data = torch.tensor([1.0, 0.0, 1e-5, 0.0])[:, None, None, None]
    assert nonzero_weight_share(conv) == pytest.approx(1 / 4)
    assert dead_channel_share(conv) == pytest.approx(1 / 2)


def graph(network: nn.Module, kind: str) -> onnx.ModelProto:
    """The network's convolutions one after another, and a weight that belongs to none of them."""
    weights = [m.weight.detach() for m in network.modules() if hasattr(m, "weight")]
    tensors = [numpy_helper.from_array(w.numpy(), f"w{i}") for i, w in enumerate(weights)]
    nodes = [helper.make_node(kind, [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(len(tensors))]
    other = numpy_helper.from_array(torch.zeros(50).numpy(), "scales")
    return helper.make_model(helper.make_graph(nodes, "g", [], [], [*tensors, other]))


@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose"])
def test_nonzero_weights_of_a_graph_are_the_network_s(kind: str) -> None:
    assert graph_nonzero_weight_share(graph(MIXED, kind)) == nonzero_weight_share(MIXED)


def test_a_graph_without_convolutions_has_no_nonzero_weights() -> None:
    assert graph_nonzero_weight_share(graph(nn.ReLU(), "Conv")) is None
