"""Transposed convolutions in strict operators: the same function."""

import pytest
import torch
from torch import nn

from distill.export.graph.plain import Patches, in_strict_operators


@pytest.mark.parametrize("bias", [True, False])
def test_the_same_function(bias):
    torch.manual_seed(1)
    layer = nn.ConvTranspose2d(5, 3, 2, 2, bias=bias)
    x = torch.randn(2, 5, 7, 9)
    with torch.no_grad():
        torch.testing.assert_close(Patches(layer)(x), layer(x), atol=1e-5, rtol=1e-5)


def test_every_pixel_of_a_patch_has_its_own_weights():
    """By hand: one input pixel of 1, weights 1 to 4, bias 10."""
    layer = nn.ConvTranspose2d(1, 1, 2, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]))
        layer.bias.fill_(10.0)
        output = Patches(layer)(torch.ones(1, 1, 1, 2))
    assert output[0, 0].tolist() == [[11.0, 12.0, 11.0, 12.0], [13.0, 14.0, 13.0, 14.0]]


def test_replaces_only_what_doubles():
    kept = [
        nn.ConvTranspose2d(4, 4, 3, 2),
        nn.ConvTranspose2d(4, 4, 2, 2, groups=2),
        nn.ConvTranspose2d(4, 4, 2, 2, padding=1),
    ]
    network = nn.Sequential(nn.ConvTranspose2d(4, 4, 2, 2), nn.Sequential(*kept))
    strict = in_strict_operators(network)
    assert isinstance(strict[0], Patches)
    assert all(isinstance(layer, nn.ConvTranspose2d) for layer in strict[1])
    assert isinstance(network[0], nn.ConvTranspose2d)
