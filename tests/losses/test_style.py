from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn

from distill.core.errors import DistillError
from distill.losses import style
from distill.losses.style import Style, VGGFeatures, gram, gram_loss, vgg_features
from support.descent import descend

MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


def small() -> VGGFeatures:
    """A random VGG in small: two layers to read, one beyond them to cut off."""
    layers = [
        nn.Conv2d(3, 8, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 12, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(12, 99, 1),
    ]
    return VGGFeatures(nn.Sequential(*layers), {"first": 1, "second": 4})


@pytest.fixture
def term(monkeypatch: pytest.MonkeyPatch) -> Style:
    monkeypatch.setattr(style, "vgg_features", lambda _backbone: small())
    return Style()


@pytest.fixture
def real(assets: Path, monkeypatch: pytest.MonkeyPatch) -> Style:
    monkeypatch.setenv("DISTILL_WEIGHTS", str(assets / "perceptual"))
    return Style("vgg19_relu3_1")


def test_gram_against_einsum() -> None:
    x = torch.randn(2, 5, 6, 7)
    expected = np.einsum("nchw,ndhw->ncd", x.numpy(), x.numpy()) / (5 * 6 * 7)
    np.testing.assert_allclose(gram(x).numpy(), expected, rtol=1e-4, atol=1e-6)


def test_gram_of_constants() -> None:
    """Channels that are everywhere 1 and 2: products 1, 2, 4, over C = 2."""
    x = torch.stack([torch.ones(3, 4), torch.full((3, 4), 2.0)])[None]
    torch.testing.assert_close(gram(x)[0], torch.tensor([[0.5, 1.0], [1.0, 2.0]]))


def test_loss_sums_layers_and_averages_pictures() -> None:
    """Layer a: Grams 1 and 4, so 9, in one of two pictures; layer b: 0 against 1/4 everywhere."""
    ones = torch.ones(2, 1, 3, 3)
    student = {"a": torch.stack([ones[0], ones[0] * 2]), "b": torch.zeros(2, 1, 2, 2)}
    target = {"a": ones, "b": torch.full((2, 1, 2, 2), 0.5)}
    assert gram_loss(student, target).item() == pytest.approx(9 / 2 + 1 / 16)


def test_features_are_of_the_normalised_picture() -> None:
    vgg, picture = small(), torch.rand(2, 3, 8, 8)
    convs = [m for m in vgg.features if isinstance(m, nn.Conv2d)]
    first = F.relu(convs[0]((picture - MEAN) / STD))
    second = F.relu(convs[1](F.max_pool2d(first, 2)))
    named = vgg(picture)
    assert list(named) == ["first", "second"]
    torch.testing.assert_close(named["first"], first)
    torch.testing.assert_close(named["second"], second)


def test_backbone_is_cut_and_frozen() -> None:
    vgg = small()
    assert len(vgg.features) == 5
    assert not any(p.requires_grad for p in vgg.parameters())


def test_equal_pictures_lose_nothing(term: Style) -> None:
    picture = torch.rand(2, 3, 16, 16)
    assert term(picture, picture.clone()).item() == 0
    assert term(picture, 1 - picture).item() > 1e-6


def test_descends(term: Style) -> None:
    values = descend(term, torch.rand(2, 3, 16, 16), torch.rand(2, 3, 16, 16) * 0.5)
    assert values[-1] < 0.7 * values[0]
    assert all(p.grad is None for p in term.parameters())


def test_transparency_lies_over_white(term: Style) -> None:
    rgb, alpha = torch.rand(2, 3, 16, 16), torch.rand(2, 1, 16, 16)
    target = torch.rand(2, 3, 16, 16)
    opaque = torch.cat([target, torch.ones(2, 1, 16, 16)], dim=1)
    over_white = rgb * alpha + (1 - alpha)
    torch.testing.assert_close(
        term(torch.cat([rgb, alpha], dim=1), opaque), term(over_white, target)
    )
    values = descend(term, torch.rand(2, 4, 16, 16), opaque)
    assert values[-1] < values[0]


@pytest.mark.usefixtures("no_downloads")
def test_missing_weights_say_what_to_do() -> None:
    with pytest.raises(DistillError, match=r"style loss: .*vgg16.*loss=l1_sobel") as error:
        Style("vgg16")
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("no_downloads")
def test_missing_vgg16_names_the_file_at_hand(
    assets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISTILL_WEIGHTS", str(assets / "perceptual"))
    with pytest.raises(DistillError, match=r"style_backbone=vgg19_relu3_1"):
        vgg_features("vgg16")


def test_real_backbone_reads_its_three_layers(assets: Path, real: Style) -> None:
    """Against the file's convolutions applied one by one."""
    state = load_file(assets / "perceptual/vgg19_relu3_1.safetensors")
    picture = torch.rand(1, 3, 32, 32)
    x, expected = (picture - MEAN) / STD, []
    for index in (0, 2, 5, 7, 10):
        if index in (5, 10):
            x = F.max_pool2d(x, 2)
        x = F.relu(
            F.conv2d(x, state[f"features.{index}.weight"], state[f"features.{index}.bias"], 1, 1)
        )
        expected += [x] if index in (0, 5, 10) else []
    named = real.vgg(picture)
    assert list(named) == ["relu1_1", "relu2_1", "relu3_1"]
    for got, want in zip(named.values(), expected, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_real_backbone_descends(real: Style) -> None:
    values = descend(real, torch.rand(1, 3, 32, 32), torch.full((1, 3, 32, 32), 0.5))
    assert values[-1] < 0.7 * values[0]
