"""A student that is told the whole picture: what it sees of it, and what it does with that."""

import pytest
import torch
from torch import nn

from distill.core.errors import DistillError
from distill.models.students.decoders.detail import Detail
from distill.models.students.decoders.fastdepth import FastDepth
from distill.models.students.decoders.nnconv import NNConv
from distill.models.students.decoders.residual import Residual
from distill.models.students.encoder import MobileNetV2Encoder
from distill.models.students.global_statistics import THUMBNAIL, GlobalStatistics, thumbnail_of
from distill.models.students.student import Student, global_statistics

DECODERS = [Detail, FastDepth, NNConv, Residual]


def student(decoder: type = Detail, told: float = 0.0) -> Student:
    """One of random weights; what it is told changes each sum by some `told`."""
    torch.manual_seed(0)
    encoder = MobileNetV2Encoder(0.35, "none")
    built = decoder(encoder.channels, encoder.strides)
    statistics = global_statistics(encoder, built)
    for layer in [*statistics.gains, *statistics.biases]:
        nn.init.normal_(layer.weight, std=told)
    return Student(encoder, built, statistics).eval()


@pytest.mark.parametrize("decoder", DECODERS)
def test_an_untrained_one_changes_nothing(decoder):
    made = student(decoder)
    photo = torch.rand(1, 3, 96, 64)
    with torch.inference_mode():
        assert torch.equal(made(photo), Student(made.encoder, made.decoder).eval()(photo))


@pytest.mark.parametrize("decoder", DECODERS)
def test_every_sum_of_a_decoder_is_adapted(decoder):
    made, seen = student(decoder), []

    def adapt(x):
        seen.append(x.shape[1])
        return x

    made.decoder(made.encoder(torch.rand(1, 3, 64, 64)), adapt)
    assert tuple(seen) == made.decoder.adapted


def test_the_summary_is_of_means_and_mean_absolute_deviations():
    statistics = GlobalStatistics(2, (1,))
    for layer, weight in (
        (statistics.feature_mean, 1.0),
        (statistics.feature_deviation, 10.0),
        (statistics.colour_mean, 100.0),
        (statistics.colour_deviation, 1000.0),
    ):
        nn.init.constant_(layer.weight, weight)
    nn.init.zeros_(statistics.feature_mean.bias)
    features = torch.tensor([[[[1.0, 3.0]], [[2.0, 2.0]]]])  # means 2 and 2, deviations 1 and 0
    # Of blocks of 4×4 pixels that are 0 and 1 on average: means ½, deviations ½.
    blocks = torch.tensor([[[[0.0, 1.0]]]]).repeat_interleave(4, 2).repeat_interleave(4, 3)
    colours = blocks.expand(1, 3, 4, 8) + torch.tensor([-0.5, 0.5]).repeat(4)
    expected = 1 * (2 + 2) + 10 * 1 + 100 * 1.5 + 1000 * 1.5
    assert torch.allclose(statistics(colours, features), torch.tensor(expected))


def test_a_tile_with_its_pictures_thumbnail_is_as_in_the_whole_picture():
    made = student(told=0.1)
    photo = torch.rand(1, 3, 512, 384)
    with torch.inference_mode():
        whole = made(photo)
        summary = made.summary(thumbnail_of(photo))
        assert torch.equal(made.stylize(photo, summary), whole)
        tile = photo[..., :256, :256]
        told = made(tile, thumbnail_of(photo))
        assert torch.equal(told, made.stylize(tile, summary))
        assert not torch.allclose(told, made(tile), atol=1e-3)


def test_a_picture_of_the_thumbnails_size_is_looked_at_once():
    made, passes = student(told=0.1), []
    made.encoder.register_forward_hook(lambda *_: passes.append(1))
    photo = torch.rand(1, 3, THUMBNAIL, THUMBNAIL)
    with torch.inference_mode():
        once = made(photo)
        assert len(passes) == 1
        assert torch.allclose(made(photo, photo), once, atol=1e-6)


def test_in_training_the_summary_knows_no_other_picture_of_the_batch():
    made = student(told=0.1).train()
    pictures = torch.rand(2, 3, 256, 256)
    before = [norm.running_mean.clone() for norm in norms(made)]
    both, alone = made.summary(pictures), made.summary(pictures[:1])
    assert torch.allclose(both[:1], alone, atol=1e-5)
    assert all(
        torch.equal(a, norm.running_mean) for a, norm in zip(before, norms(made), strict=True)
    )
    assert all(norm.training for norm in norms(made))


def test_the_encoder_learns_nothing_by_the_thumbnail():
    made = student(told=0.1).train()
    made.summary(torch.rand(1, 3, 256, 256)).sum().backward()
    assert all(p.grad is None for p in made.encoder.parameters())
    assert made.statistics.feature_mean.weight.grad is not None


def test_a_decoder_that_says_nothing_of_its_sums():
    with pytest.raises(
        DistillError, match=r"^global_statistics=thumbnail: Identity has no `adapted`"
    ):
        global_statistics(MobileNetV2Encoder(0.35, "none"), nn.Identity())


def norms(network):
    return [m for m in network.modules() if isinstance(m, nn.BatchNorm2d)]
