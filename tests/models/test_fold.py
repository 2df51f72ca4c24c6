import copy

import pytest
import torch
from torch import nn

from distill.models.batchnorm import fold_batchnorm


def norms(network: nn.Module) -> int:
    return sum(isinstance(m, nn.BatchNorm2d) for m in network.modules())


@pytest.fixture
def network(lively):
    return lively(
        nn.Sequential(
            nn.Sequential(nn.Conv2d(3, 6, 3, 2, 1, bias=False), nn.BatchNorm2d(6), nn.ReLU()),
            nn.Sequential(nn.Conv2d(6, 6, 5, 1, 2, groups=6), nn.BatchNorm2d(6)),
            nn.Sequential(nn.Conv2d(6, 4, 1), nn.ReLU()),
        )
    )


def test_same_output_without_batchnorm(network):
    folded = fold_batchnorm(network)
    assert norms(network) == 2
    assert norms(folded) == 0
    photo = torch.rand(2, 3, 32, 32)
    bare = copy.deepcopy(network)
    for parent in bare:
        if isinstance(parent[1], nn.BatchNorm2d):
            parent[1] = nn.Identity()
    with torch.no_grad():
        torch.testing.assert_close(folded(photo), network(photo), atol=1e-5, rtol=1e-5)
        assert (bare(photo) - network(photo)).abs().max() > 0.1  # BatchNorm did something


def test_folded_weights_by_the_formula(network):
    """w·γ/√(v+ε) and β + (b - μ)·γ/√(v+ε), channel by channel."""
    conv, norm = network[1]
    folded = fold_batchnorm(network)[1][0]
    factor = norm.weight / (norm.running_var + norm.eps).sqrt()
    torch.testing.assert_close(folded.weight, conv.weight * factor.view(-1, 1, 1, 1))
    torch.testing.assert_close(
        folded.bias, norm.bias + (conv.bias - norm.running_mean) * factor, atol=1e-6, rtol=1e-5
    )


def test_an_activation_that_stands_twice_parts_both_times(lively):
    relu = nn.ReLU()
    layers = nn.Conv2d(3, 6, 1), relu, nn.Conv2d(6, 6, 1), relu, nn.BatchNorm2d(6)
    network = lively(nn.Sequential(*layers), 16)
    assert norms(fold_batchnorm(network)) == 1


@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize(("bias", "affine"), [(False, True), (True, True), (True, False)])
def test_folds_grouped_transposed_convolutions(lively, groups, bias, affine):
    """Its weights are (in, out / groups, …), where torch's own folding finds no output channels."""
    layer = nn.ConvTranspose2d(6, 12, 4, 2, 1, groups=groups, bias=bias)
    norm = nn.BatchNorm2d(12, affine=affine)
    network = lively(nn.Sequential(nn.Conv2d(3, 6, 1), layer, norm), 16)
    folded = fold_batchnorm(network)
    assert norms(folded) == 0
    photo = torch.rand(2, 3, 8, 8)
    with torch.no_grad():
        torch.testing.assert_close(folded(photo), network(photo), atol=1e-5, rtol=1e-5)


def test_leaves_the_original_alone(network):
    network.train()
    before = copy.deepcopy(network.state_dict())
    folded = fold_batchnorm(network)
    assert not any(m.training for m in folded.modules())
    assert all(m.training for m in network.modules())
    after = network.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[k], after[k]) for k in before)


def test_a_norm_without_a_convolution_stays():
    network = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU(), nn.BatchNorm2d(3))
    assert norms(fold_batchnorm(network)) == 2


class Standardised(nn.Conv2d):
    """Weights of mean 0: a factor in them would be another in each channel's output."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.weight / self.weight.std((1, 2, 3), keepdim=True)
        return nn.functional.conv2d(x, weight, self.bias, self.stride, self.padding)


class Doubled(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self[1](2 * self[0](x))


@pytest.mark.parametrize(
    "layers",
    [
        Doubled(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6)),
        nn.Sequential(Standardised(3, 6, 3), nn.BatchNorm2d(6)),
        nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6, track_running_stats=False)),
    ],
    ids=["a Sequential's forward", "a convolution's forward", "no statistics"],
)
def test_what_computes_something_else_stays(lively, layers):
    network = lively(layers)
    folded, photo = fold_batchnorm(network), torch.rand(2, 3, 16, 16)
    assert norms(folded) == 1
    with torch.no_grad():
        torch.testing.assert_close(folded(photo), network(photo))


def test_a_transposed_convolution_in_two_places_is_folded_in_each(lively):
    layer = nn.ConvTranspose2d(4, 4, 2, groups=2)
    both = (nn.Sequential(layer, nn.BatchNorm2d(4)) for _ in range(2))
    network = lively(nn.Sequential(nn.Conv2d(3, 4, 1), *both))
    photo = torch.rand(2, 3, 8, 8)
    with torch.no_grad():
        torch.testing.assert_close(fold_batchnorm(network)(photo), network(photo))
