import pytest
import torch
from torch import Tensor, nn

from distill.losses import feature_distance
from distill.losses.feature_distance import FeatureDistance
from distill.losses.vgg import VGGFeatures
from support.descent import descend


def identity_and_triple() -> VGGFeatures:
    """Two layers that are known: the normalised picture, rectified, and three times that."""
    first, second = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)
    for conv, factor in ((first, 1.0), (second, 3.0)):
        nn.init.zeros_(conv.bias)
        conv.weight.data = factor * torch.eye(3)[..., None, None]
    layers = nn.Sequential(first, nn.ReLU(), second, nn.ReLU())
    made = VGGFeatures(layers, {"first": 1, "second": 3})
    made.mean.zero_()
    made.std.fill_(1)
    return made


def term(monkeypatch: pytest.MonkeyPatch, vgg: VGGFeatures, **options: int | None) -> nn.Module:
    monkeypatch.setattr(feature_distance, "vgg_features", lambda *_: vgg)
    return FeatureDistance(**options)


def test_is_the_mean_relative_difference_whatever_a_layer_s_scale(monkeypatch):
    distance = term(monkeypatch, identity_and_triple())
    target = torch.rand(2, 3, 8, 8)
    for factor, wanted in ((1.0, 0.0), (1.3, 0.3), (0.5, 0.5), (0.0, 1.0)):
        assert distance(factor * target, target).item() == pytest.approx(wanted, abs=1e-5)


def test_a_target_without_activations_is_no_division_by_zero(monkeypatch):
    black = torch.zeros(1, 3, 8, 8)
    assert term(monkeypatch, identity_and_triple())(black, black).item() == 0


def seen(distance: nn.Module, picture: Tensor) -> tuple[int, ...]:
    """First and last row and column where the value depends on the student's picture."""
    student = picture.clone().requires_grad_()
    distance(student, 1 - picture).backward()
    rows, columns = (student.grad.abs().sum((0, 1, axis)).nonzero().flatten() for axis in (3, 2))
    return int(rows[0]), int(rows[-1]), int(columns[0]), int(columns[-1])


def test_in_training_each_crop_is_drawn_anew_otherwise_it_is_the_middle(monkeypatch):
    distance = term(monkeypatch, identity_and_triple(), side=6)
    picture = 0.1 + 0.3 * torch.rand(1, 3, 10, 13)
    distance.eval()
    assert {seen(distance, picture) for _ in range(3)} == {(2, 7, 3, 8)}
    distance.train()
    places = {seen(distance, picture) for _ in range(400)}
    assert {(y, x) for y, _, x, _ in places} == {(y, x) for y in range(5) for x in range(8)}
    assert {(b - a, d - c) for a, b, c, d in places} == {(5, 5)}
    # By torch's own generator: the same state, the same crop.
    drawn = []
    for _ in range(2):
        torch.manual_seed(5)
        drawn.append(seen(distance, picture))
    assert drawn[0] == drawn[1]


def test_a_picture_smaller_than_the_crop_is_read_whole(monkeypatch):
    distance = term(monkeypatch, identity_and_triple(), side=9)
    assert seen(distance, 0.1 + 0.3 * torch.rand(1, 3, 5, 7)) == (0, 4, 0, 6)


def test_real_backbone_descends_and_is_of_the_order_of_one(assets, monkeypatch):
    monkeypatch.setenv("DISTILL_WEIGHTS", str(assets / "perceptual"))
    real = FeatureDistance("vgg19_relu3_1")
    assert list(real.vgg.names.values()) == ["relu1_1", "relu2_1", "relu3_1"]
    values = descend(real, torch.rand(1, 3, 48, 48), torch.full((1, 3, 48, 48), 0.5))
    assert values[-1] < 0.8 * values[0]
    unrelated = real(torch.rand(2, 3, 48, 48), torch.rand(2, 3, 48, 48)).item()
    assert 0.2 < unrelated < 2
