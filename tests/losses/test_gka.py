from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from distill.core.errors import DistillError
from distill.losses.gka import GKA, gka


def direct(x: Tensor, y: Tensor, centred: bool) -> float:
    """‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖) as the paper writes it, with p×q matrices, in float64."""
    a, b = x.flatten(1).double().numpy(), y.flatten(1).double().numpy()
    if centred:
        a, b = a - a.mean(0), b - b.mean(0)
    norm = np.linalg.norm
    return norm(b.T @ a) ** 2 / (norm(a.T @ a) * norm(b.T @ b))


def rotation(size: int) -> Tensor:
    return torch.linalg.qr(torch.randn(size, size))[0]


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shapes", [((8, 30), (8, 12)), ((5, 3, 4, 4), (5, 2, 8, 8))])
def test_is_the_direct_formula(shapes: tuple, centred: bool) -> None:
    x, y = (torch.randn(shape) for shape in shapes)
    y.flatten(1)[:, :10] += x.flatten(1)[:, :10]
    assert gka(x, y, centred).item() == pytest.approx(direct(x, y, centred), abs=1e-5)


@pytest.mark.parametrize("centred", [True, False])
def test_equal_features_score_one(centred: bool) -> None:
    x = torch.randn(6, 4, 3, 3)
    assert gka(x, x.clone(), centred).item() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("centred", [True, False])
def test_rotation_and_scale_do_not_matter(centred: bool) -> None:
    x = torch.randn(6, 10)
    assert gka(x, 7.5 * x @ rotation(10), centred).item() == pytest.approx(1, abs=1e-5)
    y = torch.randn(6, 14)
    turned = gka(x @ rotation(10) * 0.1, y @ rotation(14) * 30, centred)
    assert turned.item() == pytest.approx(gka(x, y, centred).item(), abs=1e-5)


def test_a_shift_matters_only_uncentred() -> None:
    x, y = torch.randn(6, 10), torch.randn(6, 10)
    assert gka(x + 5, y).item() == pytest.approx(gka(x, y).item(), abs=1e-4)
    assert abs(gka(x + 5, y, centred=False) - gka(x, y, centred=False)) > 0.1


def test_opposed_pictures_score_zero() -> None:
    """Features that vary over disjoint pairs of pictures share nothing."""
    x = torch.tensor([[1.0], [-1.0], [0.0], [0.0]])
    y = torch.tensor([[0.0], [0.0], [1.0], [-1.0]])
    assert gka(x, y).item() == pytest.approx(0, abs=1e-6)


def test_unrelated_relu_features_look_alike_unless_centred() -> None:
    """Why features are centred: ReLU features share a large mean, which is all they agree on."""
    x, y = (torch.randn(256, 64) + 2).relu(), (torch.randn(256, 64) + 2).relu()
    assert gka(x, y, centred=False).item() > 0.99
    assert gka(x, y).item() < 0.4


@pytest.mark.parametrize("pictures", [1, 2, 3])
def test_few_pictures_are_refused(pictures: int) -> None:
    with pytest.raises(DistillError, match=f"at least 4, got {pictures}.*data.batch_size"):
        gka(torch.randn(pictures, 5), torch.randn(pictures, 5))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_dead_layer_gives_no_nan(value: float) -> None:
    x = torch.full((4, 5), value, requires_grad=True)
    score = gka(x, torch.randn(4, 5))
    score.backward()
    assert score.item() == 0
    assert torch.isfinite(x.grad).all()


def test_loss_is_one_minus_the_mean_over_pairs() -> None:
    student = {"s1": torch.randn(5, 6), "s2": torch.randn(5, 7)}
    teacher = {"t1": torch.randn(5, 8), "t2": student["s2"] * 2}
    loss = GKA({"s1": "t1", "s2": "t2"})(student, teacher)
    expected = 1 - (direct(student["s1"], teacher["t1"], True) + 1) / 2
    assert loss.item() == pytest.approx(expected, abs=1e-5)


def test_no_layers_are_refused() -> None:
    with pytest.raises(DistillError, match=r"gka_layers is empty"):
        GKA({})


@pytest.mark.parametrize("centred", [True, False])
def test_descends(centred: bool) -> None:
    x, teacher = torch.rand(6, 3, 8, 8), {"t": torch.rand(6, 20).relu()}
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 5, 3), torch.nn.ReLU())
    loss, values = GKA({"s": "t"}, centred), []
    optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(10):
        optimiser.zero_grad()
        value = loss({"s": network(x)}, teacher)
        value.backward()
        assert network[0].weight.grad.abs().sum() > 0
        optimiser.step()
        values.append(value.item())
    assert values[-1] < values[0]


def test_a_term_that_is_not_centred() -> None:
    x, y = torch.rand(6, 12), torch.rand(6, 12)
    loss = GKA({"a": "b"}, centred=False)({"a": x}, {"b": y})
    assert loss.item() == pytest.approx(1 - direct(x, y, centred=False), abs=1e-5)
    assert loss.item() != pytest.approx(1 - direct(x, y, centred=True), abs=1e-2)
