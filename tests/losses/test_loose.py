import pytest
import torch

from distill.losses.loose import Loose, shifts, warp
from distill.losses.smooth_l1 import SmoothL1
from distill.losses.sobel import Sobel
from support.textures import texture


def picture(seed: int, down: float = 0.0, right: float = 0.0, side: int = 96) -> torch.Tensor:
    """(1, 3, side, side) of a smooth texture, warp in the Fourier domain."""
    pixels = torch.from_numpy(texture(seed, down, right))[None].permute(0, 3, 1, 2)
    return pixels[..., 80 : 80 + side, 80 : 80 + side].float() / 255


def lines(student: torch.Tensor, target: torch.Tensor) -> float:
    return float(SmoothL1(0.05)(student, target) + 6 * Sobel()(student, target))


@pytest.mark.parametrize(("down", "right"), [(0, 0), (3, -2), (-4, 4), (1, 0), (0, -1)])
def test_a_shift_within_the_radius_is_found(down, right):
    found = shifts(picture(2), picture(2, down, right), radius=4, window=25)
    inner = found[..., 16:-16, 16:-16]  # at the border a part of the window is repeated
    assert inner[:, 0].mean().item() == pytest.approx(right, abs=0.2)
    assert inner[:, 1].mean().item() == pytest.approx(down, abs=0.2)


def test_nothing_moves_further_than_the_radius():
    for radius in (2, 4):
        found = shifts(picture(3), picture(4), radius, window=9)
        assert found.abs().max().item() <= radius + 1


def test_where_nothing_is_to_be_seen_nothing_moves():
    flat = torch.full((2, 3, 32, 32), 0.5)
    assert not shifts(flat, flat + 0.1, radius=4, window=9).any()


def test_taking_pixels_from_elsewhere():
    ramp = torch.arange(8.0).expand(1, 1, 8, 8).contiguous()
    by = torch.zeros(1, 2, 8, 8)
    by[:, 0] = 1.5
    wanted = (torch.arange(8.0) + 1.5).clamp(max=7)
    torch.testing.assert_close(warp(ramp, by)[0, 0, 3], wanted)
    by = torch.zeros(1, 2, 8, 8)
    by[:, 1] = -2
    torch.testing.assert_close(warp(ramp.mT, by)[0, 0, :, 3], (torch.arange(8.0) - 2).clamp(min=0))


def test_a_drawing_that_is_off_costs_little_and_another_one_as_much():
    own = picture(5)
    off = picture(5, 3, -2)
    assert Loose()(own, off).item() < 0.2 * lines(own, off)
    other = picture(6)
    assert Loose()(own, other).item() > 0.5 * lines(own, other)
