"""The style of one picture: what is known without an answer of the code's own."""

import numpy as np
import pytest
import torch

from distill.losses import feature_distance
from distill_picture import picture_losses as picture
from distill_picture.picture_losses import (
    COLOUR,
    PictureStyle,
    TotalVariation,
    chroma_distance,
    gram_around,
)
from support.descent import descend
from support.small_vgg import small_vgg


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    network = small_vgg()  # one and the same for all terms of a test
    monkeypatch.setattr(picture, "vgg_features", lambda *_: network)
    monkeypatch.setattr(picture, "LAYERS", ("first", "second"))
    monkeypatch.setattr(feature_distance, "vgg_features", lambda *_: small_vgg())
    monkeypatch.setattr("torch.cpu._is_avx512_bf16_supported", lambda: False)


def learnt(
    *pictures: torch.Tensor, weights: tuple[float, ...] = (), **options: bool
) -> PictureStyle:
    term = PictureStyle(**options)
    term.learn(pictures, weights or [1.0] * len(pictures))
    return term.eval()


def test_the_style_s_own_picture_loses_nothing_and_another_does():
    style, photo = torch.rand(2, 3, 64, 64)
    term = learnt(style)
    assert term(style[None], photo[None]).item() == pytest.approx(0, abs=1e-6)
    assert term(photo[None] * 0.3, photo[None]).item() > 0.05


def test_the_gram_matrix_around_the_means_is_the_covariance():
    """Of the style itself; of features that are the means everywhere it is 0."""
    features = torch.rand(1, 4, 8, 8)
    mean = features.mean((0, 2, 3))
    still = mean[None, :, None, None].expand(1, 4, 8, 8)
    assert gram_around(still, mean).abs().max() < 1e-12
    wanted = np.cov(features[0].flatten(1).numpy(), bias=True)
    np.testing.assert_allclose(gram_around(features, mean)[0].numpy(), wanted, atol=1e-6)


def test_weights_mix_the_statistics_of_several():
    one, other = torch.rand(3, 32, 32), 0.4 * torch.rand(3, 32, 32)
    alone, mixed = learnt(one), learnt(one, other, weights=(1.0, 1e-9))
    for (mean, gram), (near, close) in zip(
        alone.statistics[0].values(), mixed.statistics[0].values(), strict=True
    ):
        torch.testing.assert_close(near, mean)
        torch.testing.assert_close(close, gram)
    both = learnt(one, other, weights=(3.0, 1.0)).statistics[0]["first"][0]
    of = [learnt(each).statistics[0]["first"][0] for each in (one, other)]
    torch.testing.assert_close(both, 0.75 * of[0] + 0.25 * of[1])


def test_kept_colours_are_the_photo_s_whatever_the_style_s():
    style, photo = torch.rand(2, 3, 32, 32)
    term = learnt(style, keep_colour=True)
    grey = learnt(
        style.mul(torch.tensor([0.299, 0.587, 0.114]).view(3, 1, 1)).sum(0).expand(3, -1, -1)
    )
    same = photo[None]
    luma = (same * torch.tensor([0.299, 0.587, 0.114]).view(3, 1, 1)).sum(1, keepdim=True)
    torch.testing.assert_close(term(same, same), grey(luma.expand_as(same), same))
    red = torch.zeros(1, 3, 8, 8)
    red[:, 0] = 0.5
    # Luma .1495: left of red .3505, of green and blue .1495 each.
    assert chroma_distance(red, 0 * red).item() == pytest.approx(
        (0.3505 + 2 * 0.1495) / 3, abs=1e-5
    )
    assert COLOUR > 0


def test_style_descends_and_its_network_learns_nothing():
    term = learnt(torch.rand(3, 64, 64)).train()
    values = descend(term, 0.3 * torch.rand(2, 3, 64, 64), torch.rand(2, 3, 64, 64))
    assert values[-1] < values[0]
    assert all(p.grad is None for p in term.parameters())


def test_training_reads_crops_and_evaluation_all():
    term = learnt(torch.rand(3, 64, 64))
    term.side, seen = 16, []
    term.vgg.register_forward_pre_hook(lambda _, given: seen.append(given[0].shape[-1]))
    picture = torch.rand(1, 3, 64, 64)
    term(picture, picture)
    term.train()(picture, picture)
    assert seen == [64, 32, 16, 16, 16, 16]


def test_total_variation_of_a_chequer_and_of_one_colour():
    rows, columns = torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")
    chequer = ((rows + columns) % 2).float().expand(1, 3, 4, 4)
    term = TotalVariation()
    assert term(chequer, torch.rand(1, 3, 4, 4)).item() == 1
    assert term(torch.full((1, 3, 4, 4), 0.7), chequer).item() == 0
