import numpy as np
import pytest
import torch
from kornia.filters import spatial_gradient

from distill.losses.sobel import Sobel


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
