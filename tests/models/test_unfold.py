"""Folded away and given back: what a network draws stays."""

import pytest
import torch
from torch import nn

from distill.models.batchnorm import fold_batchnorm, unfold_batchnorm
from distill.models.students.decoders.detail import Detail
from distill.models.students.encoder import MobileNetV2Encoder
from distill.models.students.student import Student


def student(seed: int) -> Student:
    torch.manual_seed(seed)
    encoder = MobileNetV2Encoder(0.35, weights="none")
    return Student(encoder, Detail(encoder.channels, encoder.strides))


@pytest.fixture(scope="module")
def photos():
    random = torch.Generator().manual_seed(1)
    small = torch.rand(4, 3, 8, 8, generator=random)
    return nn.functional.interpolate(small, size=64, mode="bilinear").clamp(0, 1)


@pytest.mark.campaign
def test_what_it_draws_stays_and_batches_are_normalised(lively, photos):
    trained = lively(student(1)).eval()
    made = student(2)
    unfold_batchnorm(made, fold_batchnorm(trained).state_dict(), photos)
    assert made.training
    with torch.inference_mode():
        wanted = trained(photos)
        torch.testing.assert_close(made.eval()(photos), wanted, atol=1e-4, rtol=0)
        # The statistics of this batch are those that were measured, but for Bessel's correction.
        assert (made.train()(photos) - wanted).abs().mean() < 0.005


def test_statistics_are_those_of_the_convolution_s_output(photos):
    """One layer, folded by hand: weight 2, bias 0.5 of x in a channel."""
    layer = nn.Sequential(nn.Conv2d(3, 1, 1, bias=False), nn.BatchNorm2d(1))
    weight = torch.tensor([2.0, 0, 0]).view(1, 3, 1, 1)
    unfold_batchnorm(layer, {"0.weight": weight, "0.bias": torch.tensor([0.5])}, photos)
    red = 2 * photos[:, 0]
    norm = layer[1]
    assert norm.running_mean.item() == pytest.approx(red.mean().item(), abs=1e-5)
    assert norm.running_var.item() == pytest.approx(red.var().item(), rel=1e-4)
    torch.testing.assert_close(layer.eval()(photos)[:, 0], red + 0.5, atol=1e-5, rtol=0)


def test_weights_of_another_network(photos):
    with pytest.raises(RuntimeError):
        unfold_batchnorm(student(1), {"encoder.0.weight": torch.zeros(1)}, photos)
