from __future__ import annotations

import numpy as np
import pytest
import torch
from kornia.filters import spatial_gradient
from kornia.losses import total_variation

from distill.losses.pixels import Differences, Phases, SmoothL1, Sobel


@pytest.mark.parametrize("beta", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("gap", [0.0, 0.01, 0.05, 0.2, 0.9])
def test_by_formula(beta, gap):
    """d²/2β below β, d - β/2 above, the same for both signs."""
    expected = gap**2 / (2 * beta) if gap < beta else gap - beta / 2
    dark, light = torch.full((2, 3, 4, 5), 0.05), torch.full((2, 3, 4, 5), 0.05 + gap)
    loss = SmoothL1(beta)
    assert loss(dark, light).item() == pytest.approx(expected, abs=1e-6)
    assert loss(light, dark).item() == pytest.approx(expected, abs=1e-6)


def test_gradient_is_linear_above_beta():
    """With the default β of 0.05 a gap of 0.2 pulls with full force; with β = 1 with a fifth."""
    for beta, force in ((0.05, 1.0), (1.0, 0.2)):
        student = torch.full((1, 3, 2, 2), 0.7, requires_grad=True)
        SmoothL1(beta)(student, torch.full((1, 3, 2, 2), 0.5)).backward()
        torch.testing.assert_close(student.grad, torch.full((1, 3, 2, 2), force / 12))


def sobel_by_hand(picture: np.ndarray) -> np.ndarray:
    """Gradients (2, H, W) of one channel: Sobel's 3×3 divided by 8, the edge repeated outside."""
    kernel = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8
    padded = np.pad(picture, 1, mode="edge")
    out = np.zeros((2, *picture.shape))
    for i in range(picture.shape[0]):
        for j in range(picture.shape[1]):
            window = padded[i : i + 3, j : j + 3]
            out[:, i, j] = (window * kernel).sum(), (window * kernel.T).sum()
    return out


def test_against_loops():
    a, b = torch.rand(1, 4, 6, 7), torch.rand(1, 4, 6, 7)
    gaps = [
        np.abs(sobel_by_hand(a[0, c].numpy()) - sobel_by_hand(b[0, c].numpy())) for c in range(4)
    ]
    assert Sobel()(a, b).item() == pytest.approx(np.mean(gaps), rel=1e-5)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_the_same_as_from_kornia_s_gradients(layout):
    a, b = (torch.rand(2, 4, 9, 11).contiguous(memory_format=layout) for _ in range(2))
    a.requires_grad_()
    theirs = (spatial_gradient(a) - spatial_gradient(b)).abs().mean()
    assert Sobel()(a, b).item() == pytest.approx(theirs.item(), rel=1e-6)
    (ours,) = torch.autograd.grad(Sobel()(a, b), a)
    (wanted,) = torch.autograd.grad(theirs, a)
    assert torch.allclose(ours, wanted, atol=1e-8)


def test_is_the_total_variation_of_the_difference():
    """kornia's mean, of square pictures: the steps of each direction over pixels in a row."""
    student, target = torch.rand(2, 2, 3, 9, 9)
    wanted = total_variation(student - target, reduction="mean").mean() / 2
    assert Differences()(student, target).item() == pytest.approx(wanted.item(), rel=1e-5)


def test_sees_the_checkerboard_that_sobel_does_not():
    board = (torch.arange(8)[:, None] + torch.arange(8)) % 2 * 0.1
    board, flat = board.expand(1, 3, 8, 8), torch.full((1, 3, 8, 8), 0.05)
    inside = (..., slice(1, -1), slice(1, -1))
    assert Sobel()(board, flat).item() < 0.01  # the rim alone, where the edge is repeated
    assert Differences()(board[inside], flat[inside]).item() == pytest.approx(0.1)


def test_is_how_far_each_position_of_a_patch_is_from_their_mean() -> None:
    """0, 1, 2 and 5 tenths lie 2, 1, 0 and 3 from their mean of 2: 1.5 on average."""
    grid = torch.tensor([[0.0, 0.1], [0.2, 0.5]]).repeat(35, 33)[:-1].expand(2, 3, 69, 66)
    assert Phases()(grid + 0.3, torch.zeros_like(grid)).item() == pytest.approx(0.15, abs=1e-5)


def test_sees_the_grid_and_not_what_the_target_has() -> None:
    target = torch.rand(1, 3, 64, 64)
    columns = 0.1 * (torch.arange(64) % 2).expand_as(target)
    assert Sobel()(columns[..., 1:-1, 1:-1], torch.zeros(1, 3, 62, 62)).item() < 0.01
    assert Phases()(target + columns, target).item() == pytest.approx(0.05, abs=1e-5)
    assert Phases()(target + 0.2, target).item() == pytest.approx(0, abs=1e-6)
