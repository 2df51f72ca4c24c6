import pytest
import torch
from torch import nn

from distill.metrics.nonzero_weights import weight_shares


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


def test_nonzero_weights():
    """2, -1 and 2.1e-3 of nine, 2e-6 and -1e-6 of three."""
    assert weight_shares(MIXED).nonzero == pytest.approx(5 / 12)


def test_dead_channels():
    """The middle channel of the first layer; one of four."""
    assert weight_shares(MIXED).dead == pytest.approx(1 / 4)


def test_extremes():
    assert weight_shares(network([[1.0, -1.0]])).nonzero == 1
    assert weight_shares(network([[1.0, -1.0]])).dead == 0
    nothing = network([[0.0, 0.0], [0.0, 0.0]])
    assert weight_shares(nothing).nonzero == 0
    assert weight_shares(nothing).dead == 1


def test_subnormal_weights():
    """Below 1.18e-38 but not zero; zero costs nothing, 1.2e-38 is still normal."""
    assert weight_shares(network([[1e-39, -1e-40, 0.0, 1.2e-38, 1.0]])).subnormal == pytest.approx(
        2 / 5
    )
    assert weight_shares(MIXED).subnormal == 0


def test_transposed_convolutions_count_too():
    """Their weights lie input first: two inputs to two outputs, of which the second is dead."""
    conv = nn.ConvTranspose2d(2, 2, 1)
    conv.weight.data = torch.tensor([[1.0, 0.0], [0.5, 1e-5]])[:, :, None, None]
    assert weight_shares(conv).nonzero == pytest.approx(2 / 4)
    assert weight_shares(conv).dead == pytest.approx(1 / 2)


def test_groups_of_a_transposed_convolution_have_outputs_of_their_own():
    """Two groups of two inputs and one output each; the second group's is dead."""
    conv = nn.ConvTranspose2d(4, 2, 1, groups=2)
    conv.weight.data = torch.tensor([1.0, 0.0, 1e-5, 0.0])[:, None, None, None]
    assert weight_shares(conv).nonzero == pytest.approx(1 / 4)
    assert weight_shares(conv).dead == pytest.approx(1 / 2)
