import pytest
import torch
from kornia.losses import total_variation

from distill.losses.differences import Differences
from distill.losses.sobel import Sobel


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
