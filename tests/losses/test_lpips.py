"""LPIPS as a loss, with AlexNet's layout and random weights."""

import pytest
import torch
import torchvision

from distill.core.errors import DistillError
from distill.core.lpips import ALEXNET
from distill.core.weights import WeightsFile
from distill.losses import lpips
from distill.losses.lpips import LPIPSTerm
from distill.metrics.similarity import lpips_or_none


@pytest.fixture
def weights(monkeypatch, tmp_path):
    torch.manual_seed(0)
    features = torchvision.models.alexnet(weights=None).features
    file = WeightsFile("alexnet.pth")
    torch.save({f"features.{k}": v for k, v in features.state_dict().items()}, tmp_path / file.name)
    monkeypatch.setenv("DISTILL_WEIGHTS", str(tmp_path))
    for where in ("losses.lpips", "metrics.similarity"):
        monkeypatch.setattr(f"distill.{where}.ALEXNET", file)


def test_is_the_mean_of_the_metric_in_training_too(weights):
    a, b = torch.rand(2, 2, 3, 48, 40)
    expected = lpips_or_none()(a, b).mean()
    assert expected > 0
    term = LPIPSTerm(side=None).train()
    for _ in range(3):  # no dropout
        torch.testing.assert_close(term(a, b), expected)
    assert term(a, a).item() == 0


def test_has_a_gradient_and_learns_nothing_itself(weights):
    student, target = torch.rand(2, 1, 3, 40, 40)
    student.requires_grad_()
    term = LPIPSTerm(side=32).train()
    term(student, target).backward()
    assert (student.grad.flatten(1).abs().amax(1) > 0).all()
    assert not [p for p in term.parameters() if p.requires_grad]
    # A crop of 32 pixels, so nothing beyond it.
    seen = student.grad.abs().sum((0, 1))
    assert (seen.sum(0) > 0).sum() <= 32 >= (seen.sum(1) > 0).sum()


def test_missing_weights_name_the_loss(monkeypatch):
    def missing(_file):
        raise DistillError(f"weights file {ALEXNET.name}: not found")

    monkeypatch.setattr(lpips.weights, "find", missing)
    with pytest.raises(DistillError, match=r"loss\.weights\.lpips: .*alexnet.*lpips=0"):
        LPIPSTerm()
