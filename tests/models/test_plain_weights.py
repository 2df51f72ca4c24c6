"""Weights that are computed at each call, plain in a copy: the same output."""

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune, spectral_norm, weight_norm

from distill.models.batchnorm import fold_batchnorm
from distill.models.plain_weights import plain_copy

WAYS = {
    "weight norm": parametrizations.weight_norm,
    "spectral norm": parametrizations.spectral_norm,
    "older weight norm": weight_norm,
    "older spectral norm": spectral_norm,
    "pruning": lambda layer: prune.l1_unstructured(layer, "weight", 0.5),
}


@pytest.mark.filterwarnings("ignore:.*weight_norm.*is deprecated:FutureWarning")
@pytest.mark.filterwarnings("ignore:.*spectral_norm.*is deprecated:FutureWarning")
@pytest.mark.parametrize("way", WAYS)
def test_the_same_output_of_plain_weights(lively, way):
    torch.manual_seed(0)
    layer = WAYS[way](nn.Conv2d(3, 8, 3, padding=1))
    network = lively(nn.Sequential(layer, nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 3, 1)))
    photo = torch.rand(2, 3, 16, 16)
    network.train()(photo).sum().backward()  # as in the middle of a training
    network.eval()
    expected = network(photo)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    plain, folded = plain_copy(network), fold_batchnorm(network)
    assert {*plain.state_dict()} == {*nn.Sequential(nn.Conv2d(3, 8, 3), *network[1:]).state_dict()}
    torch.testing.assert_close(plain(photo), expected)
    torch.testing.assert_close(folded(photo), expected, atol=1e-5, rtol=1e-5)
    assert not any(isinstance(m, nn.BatchNorm2d) for m in folded.modules())
    torch.testing.assert_close(network(photo), expected, atol=0, rtol=0)  # it stays as it was
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
