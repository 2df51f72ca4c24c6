import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from distill.core.errors import DistillError
from distill.core.images import moved
from distill.metrics.line_figures import FRAMES, MARGIN, flicker

GREY = torch.full((2, 3, 96, 96), 0.5)


def same(photos: Tensor) -> Tensor:
    return photos


def test_a_photo_left_as_it_is_has_the_noise_alone():
    """Of a flat grey: E|n| = σ·√(2/π) levels, and nothing moves."""
    noise, step, pan = flicker(same, GREY).T
    assert noise.tolist() == pytest.approx([2 * math.sqrt(2 / math.pi)] * 2, rel=0.02)
    assert step.tolist() == pan.tolist() == [0, 0]


def test_a_network_that_doubles_contrast_doubles_the_noise():
    def twice(photos: Tensor) -> Tensor:
        return 0.5 + 2 * (photos - 0.5)

    torch.testing.assert_close(flicker(twice, GREY)[:, 0], 2 * flicker(same, GREY)[:, 0])


def test_a_pattern_fixed_to_the_picture_s_frame_flickers_by_the_step():
    """Stripes of 0 and 0.2 that stay while the scene moves: 51 levels, over half of the steps."""

    def stripes(photos: Tensor) -> Tensor:
        return photos + 0.2 * (torch.arange(photos.shape[-1]) % 2)

    noise, step, pan = flicker(stripes, GREY).T
    assert step.tolist() == pytest.approx([51 / 2] * 2, abs=1e-3)  # across, and not down
    assert noise.tolist() == pytest.approx(flicker(same, GREY)[:, 0].tolist())
    # Moved back by f of a pixel a stripe pixel is 0.2·(1 − f) or 0.2·f: a quarter a frame.
    assert pan.tolist() == pytest.approx([51 / 4] * 2, abs=1e-3)


def test_a_network_that_moves_with_the_scene_is_still():
    """A blur is the same wherever the scene is; the pan of a plane resamples to itself."""
    slope = (torch.arange(96.0) / 200).expand(1, 3, 96, 96)
    blur = torch.full((3, 1, 3, 3), 1 / 9)

    def blurred(photos: Tensor) -> Tensor:
        return F.conv2d(F.pad(photos, (1, 1, 1, 1), mode="replicate"), blur, groups=3)

    texture = torch.rand(1, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    assert flicker(blurred, texture)[0, 1].item() == pytest.approx(0, abs=1e-4)
    assert flicker(blurred, slope)[0, 1:].tolist() == pytest.approx([0, 0], abs=1e-3)


def test_what_is_new_at_the_border_does_not_count():
    def framed(photos: Tensor) -> Tensor:
        out = photos.clone()
        out[..., : MARGIN - 2] = torch.rand(out[..., : MARGIN - 2].shape)
        return out

    assert flicker(framed, GREY)[:, 1:].abs().max() == 0


def test_a_photo_s_figure_does_not_depend_on_who_runs_it():
    assert torch.equal(flicker(same, GREY), flicker(same, GREY))
    assert not torch.equal(flicker(same, GREY), flicker(same, GREY, seed=5))
    assert torch.equal(flicker(same, GREY)[1:], flicker(same, GREY[1:], seed=1))


def test_how_often_the_network_runs():
    seen: list[int] = []

    def counted(photos: Tensor) -> Tensor:
        seen.append(len(photos))
        return photos

    flicker(counted, GREY)
    assert seen == [2] * (1 + 1 + 2 + FRAMES - 1)


def test_moving_by_whole_and_by_parts_of_a_pixel():
    ramp = torch.arange(8.0).expand(1, 1, 8, 8)
    assert moved(ramp, 0, 2)[0, 0, 0].tolist() == [0, 0, 0, 1, 2, 3, 4, 5]
    assert moved(ramp, 0, -2)[0, 0, 0].tolist() == [2, 3, 4, 5, 6, 7, 7, 7]
    assert moved(ramp, 0, 0.25)[0, 0, 0].tolist() == [0, 0.75, 1.75, 2.75, 3.75, 4.75, 5.75, 6.75]
    assert moved(ramp, 0, -0.25)[0, 0, 0, :7].tolist() == [0.25 + i for i in range(7)]
    assert torch.equal(moved(ramp.mT, 1, 0), moved(ramp, 0, 1).mT)
    assert torch.equal(moved(ramp, 0, 0), ramp)


def test_too_small_a_photo():
    with pytest.raises(DistillError, match="these photos are of 32×64"):
        flicker(same, torch.rand(1, 3, 32, 64))
