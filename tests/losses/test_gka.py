from typing import get_args

import numpy as np
import pytest
import torch
from torch import Tensor

from distill.core.errors import DistillError
from distill.losses.gka import GKA, Estimator, gka

ESTIMATORS = get_args(Estimator)


def direct(x: Tensor, y: Tensor, estimator: str) -> float:
    """‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖) as the paper writes it, with p×q matrices, in float64."""
    a, b = x.flatten(1).double().numpy(), y.flatten(1).double().numpy()
    if estimator == "unbiased":
        k, m = (each @ each.T for each in (a, b))
        return hsic1(k, m) / np.sqrt(hsic1(k, k) * hsic1(m, m))
    if estimator == "centred":
        a, b = a - a.mean(0), b - b.mean(0)
    norm = np.linalg.norm
    return norm(b.T @ a) ** 2 / (norm(a.T @ a) * norm(b.T @ b))


def hsic1(k: np.ndarray, m: np.ndarray) -> float:
    """Song et al. 2012, equation 5, as it is printed."""
    n, one = len(k), np.ones(len(k))
    k, m = k - np.diag(np.diag(k)), m - np.diag(np.diag(m))
    sums = (one @ k @ one) * (one @ m @ one) / ((n - 1) * (n - 2))
    return (np.trace(k @ m) + sums - 2 / (n - 2) * (one @ k @ m @ one)) / (n * (n - 3))


def rotation(size: int) -> Tensor:
    return torch.linalg.qr(torch.randn(size, size))[0]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("shapes", [((8, 30), (8, 12)), ((5, 3, 4, 4), (5, 2, 8, 8))])
def test_is_the_direct_formula(shapes, estimator):
    x, y = (torch.randn(shape) for shape in shapes)
    y.flatten(1)[:, :10] += x.flatten(1)[:, :10]
    assert gka(x, y, estimator).item() == pytest.approx(direct(x, y, estimator), abs=1e-5)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_rotation_and_scale_do_not_matter(estimator):
    x = torch.randn(6, 10)
    assert gka(x, 7.5 * x @ rotation(10), estimator).item() == pytest.approx(1, abs=1e-5)
    y = torch.randn(6, 14)
    turned = gka(x @ rotation(10) * 0.1, y @ rotation(14) * 30, estimator)
    assert turned.item() == pytest.approx(gka(x, y, estimator).item(), abs=1e-5)


def test_a_shift_matters_to_plain_alone():
    x, y = torch.randn(6, 10), torch.randn(6, 10)
    for estimator in ("unbiased", "centred"):
        assert gka(x + 5, y, estimator).item() == pytest.approx(
            gka(x, y, estimator).item(), abs=1e-4
        )
    assert abs(gka(x + 5, y, "plain") - gka(x, y, "plain")) > 0.1


def test_opposed_pictures():
    """Features that vary over disjoint pairs of 8 pictures: nothing in common.

    Unbiased by hand: each Gram matrix without its diagonal has one pair of -1. HSIC₁ of both is
    (2 · 2 / 42) / 40, of each with itself (2 + 4 / 42 - 4 / 6) / 40: the score is 1 / 15.
    """
    x, y = torch.zeros(8, 1), torch.zeros(8, 1)
    x[0], x[1], y[2], y[3] = 1, -1, 1, -1
    assert gka(x, y).item() == pytest.approx(1 / 15, abs=1e-6)
    assert gka(x, y, "centred").item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("pictures", [1, 2, 3])
def test_few_pictures_are_refused(pictures):
    with pytest.raises(DistillError, match=f"at least 4, got {pictures}.*data.batch_size"):
        gka(torch.randn(pictures, 5), torch.randn(pictures, 5))


@pytest.mark.parametrize("estimator", ["unbiased", "centred"])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_dead_layer_gives_no_nan(value, estimator):
    x = torch.full((4, 5), value, requires_grad=True)
    score = gka(x, torch.randn(4, 5), estimator)
    score.backward()
    assert score.item() == 0
    assert torch.isfinite(x.grad).all()


def test_loss_is_one_minus_the_mean_over_pairs():
    student = {"s1": torch.randn(5, 6), "s2": torch.randn(5, 7)}
    teacher = {"t1": torch.randn(5, 8), "t2": student["s2"] * 2}
    loss = GKA({"s1": "t1", "s2": "t2"})(student, teacher)
    expected = 1 - (direct(student["s1"], teacher["t1"], "unbiased") + 1) / 2
    assert loss.item() == pytest.approx(expected, abs=1e-5)


def test_no_layers_are_refused():
    with pytest.raises(DistillError, match=r"gka_layers is empty"):
        GKA({})


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_gradient_is_the_difference_quotient(estimator):
    x, y = torch.randn(6, 5, requires_grad=True), torch.randn(6, 7)
    gka(x, y, estimator).backward()
    step = torch.zeros_like(x)
    step[2, 3] = 1e-4
    there, back = (direct(x.detach().double() + s, y, estimator) for s in (step, -step))
    assert x.grad[2, 3].item() == pytest.approx((there - back) / 2e-4, rel=1e-3, abs=1e-5)


@pytest.mark.parametrize(
    ("arguments", "estimator"),
    [
        ({}, "unbiased"),
        ({"estimator": "plain"}, "plain"),
        ({"centred": True}, "centred"),  # as earlier runs are saved
        ({"centred": False}, "plain"),
        ({"centred": None}, "unbiased"),
    ],
)
def test_a_term_of_each_estimator(arguments, estimator):
    x, y = torch.rand(6, 12), torch.rand(6, 12)
    loss = GKA({"a": "b"}, **arguments)({"a": x}, {"b": y})
    assert loss.item() == pytest.approx(1 - direct(x, y, estimator), abs=1e-5)
    others = {*ESTIMATORS} - {estimator}
    assert min(abs(loss.item() - 1 + direct(x, y, other)) for other in others) > 1e-2
