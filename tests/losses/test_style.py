import numpy as np
import pytest
import torch

from distill.losses import style
from distill.losses.style import Style, gram, gram_loss
from support.small_vgg import small_vgg


@pytest.fixture
def term(monkeypatch):
    monkeypatch.setattr(style, "vgg_features", lambda *_: small_vgg())
    return Style()


def test_gram_against_einsum():
    x = torch.randn(2, 5, 6, 7)
    expected = np.einsum("nchw,ndhw->ncd", x.numpy(), x.numpy()) / (5 * 6 * 7)
    np.testing.assert_allclose(gram(x).numpy(), expected, rtol=1e-4, atol=1e-6)


def test_loss_sums_layers_and_averages_pictures():
    """Layer a: Grams 1 and 4, so 9, in one of two pictures; layer b: 0 against 1/4 everywhere."""
    ones = torch.ones(2, 1, 3, 3)
    student = {"a": torch.stack([ones[0], ones[0] * 2]), "b": torch.zeros(2, 1, 2, 2)}
    target = {"a": ones, "b": torch.full((2, 1, 2, 2), 0.5)}
    assert gram_loss(student, target).item() == pytest.approx(9 / 2 + 1 / 16)


def test_a_crop_is_read_alone_in_the_middle_or_anywhere(term):
    """The middle's loss is that of the cut pictures; in training all places are drawn."""
    student, target = torch.rand(2, 3, 20, 24), torch.rand(2, 3, 20, 24)
    term.side = 16
    middle = (..., slice(2, 18), slice(4, 20))
    assert term.eval()(student, target) == pytest.approx(term(student[middle], target[middle]))
    drawn = {round(term.train()(student, target).item(), 9) for _ in range(40)}
    assert len(drawn) > 10
