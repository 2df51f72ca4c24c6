import pytest
import torch

from distill.losses.phases import Phases
from distill.losses.sobel import Sobel


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
