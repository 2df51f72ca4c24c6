from __future__ import annotations

import numpy as np
import pytest
import torch
from kornia.filters import spatial_gradient
from torch import Tensor

from distill.losses.sobel import Sobel
from support.descent import descend


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


def ramp(slope: float, width: int = 9) -> Tensor:
    return (torch.arange(width) * slope).expand(2, 3, 7, width).clone()


@pytest.mark.parametrize(("a", "b"), [(0.0, 1.0), (0.3, 0.3), (0.9, 0.2)])
def test_flat_pictures_have_no_edges(a: float, b: float) -> None:
    flat = Sobel()(torch.full((1, 3, 8, 8), a), torch.full((1, 3, 8, 8), b))
    assert flat.item() == pytest.approx(0, abs=1e-6)


def test_a_ramp_by_hand() -> None:
    """(1+2+1)·2·s/8 = s inside, half of it in the two edge columns, and nothing down the rows."""
    slope, width = 0.05, 9
    expected = slope * (width - 2 + 2 * 0.5) / width / 2
    assert Sobel()(ramp(slope), torch.zeros(2, 3, 7, 9)).item() == pytest.approx(expected)
    across = ramp(slope).transpose(2, 3)
    assert Sobel()(across, torch.zeros(2, 3, 9, 7)).item() == pytest.approx(expected)


def test_ramps_differ_by_their_slopes() -> None:
    expected = 0.03 * 8 / 9 / 2
    assert Sobel()(ramp(0.05), ramp(0.02)).item() == pytest.approx(expected, abs=1e-7)


def test_against_loops() -> None:
    a, b = torch.rand(1, 4, 6, 7), torch.rand(1, 4, 6, 7)
    gaps = [
        np.abs(sobel_by_hand(a[0, c].numpy()) - sobel_by_hand(b[0, c].numpy())) for c in range(4)
    ]
    assert Sobel()(a, b).item() == pytest.approx(np.mean(gaps), rel=1e-5)


def test_equal_pictures_lose_nothing() -> None:
    picture = torch.rand(2, 3, 8, 8)
    assert Sobel()(picture, picture.clone()).item() == 0


def test_descends() -> None:
    values = descend(Sobel(), torch.rand(2, 3, 8, 8), torch.rand(2, 3, 8, 8), rate=0.01)
    assert values[-1] < 0.95 * values[0]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_the_same_as_from_kornia_s_gradients(layout: torch.memory_format) -> None:
    a, b = (torch.rand(2, 4, 9, 11).contiguous(memory_format=layout) for _ in range(2))
    a.requires_grad_()
    theirs = (spatial_gradient(a) - spatial_gradient(b)).abs().mean()
    assert Sobel()(a, b).item() == pytest.approx(theirs.item(), rel=1e-6)
    (ours,) = torch.autograd.grad(Sobel()(a, b), a)
    (wanted,) = torch.autograd.grad(theirs, a)
    assert torch.allclose(ours, wanted, atol=1e-8)
