import pytest
import torch
from torch import nn

from distill_gan.discriminators.patch import PatchDiscriminator


@pytest.mark.parametrize(("same", "side"), [(False, 30), (True, 32)])
@pytest.mark.parametrize("channels", [3, 6, 7])
def test_logits_at_256(same, side, channels):
    network = PatchDiscriminator(channels, width=0.125, same=same)
    assert network(torch.rand(1, channels, 256, 256)).shape == (1, 1, side, side)


def test_a_logit_sees_70_pixels():
    network = PatchDiscriminator(3, width=0.125, norm="none")
    picture = torch.rand(1, 3, 256, 256, requires_grad=True)
    network(picture)[0, 0, 15, 15].backward()
    touched = picture.grad.abs().sum((0, 1)).nonzero()
    assert (touched.max(0).values - touched.min(0).values + 1).tolist() == [70, 70]


def test_parameters_of_the_papers():
    count = sum(p.numel() for p in PatchDiscriminator(3, norm="instance").parameters())
    assert count == 2_764_737  # CycleGAN's, as its public implementation prints it
    count = sum(p.numel() for p in PatchDiscriminator(6).parameters())
    assert count == 2_768_705  # Pix2Pix's


@pytest.mark.parametrize(
    ("norm", "kind"), [("batch", nn.BatchNorm2d), ("instance", nn.InstanceNorm2d)]
)
def test_norms(norm, kind):
    layers = list(PatchDiscriminator(3, norm=norm).model)
    assert sum(isinstance(layer, kind) for layer in layers) == 3
    assert not isinstance(layers[1], kind)  # none on the first layer


def test_leaky_as_the_paper_s():
    slopes = [m.negative_slope for m in PatchDiscriminator(3).model if type(m) is nn.LeakyReLU]
    assert slopes == [0.2] * 4


def test_a_critic_has_no_norm():
    layers = PatchDiscriminator(3, norm="none").model
    assert not [m for m in layers if isinstance(m, (nn.BatchNorm2d, nn.InstanceNorm2d))]
