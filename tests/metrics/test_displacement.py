"""Displacements that were made: moved in the Fourier domain, enlarged, or none."""

import pytest
import torch
from torch import Tensor

from distill.metrics.line_figures import displacement, typical


@pytest.fixture
def textured():
    """(4, 3, 256, 256): soft noise, so that a fraction of a pixel is well defined."""
    noise = torch.randn(4, 3, 256, 256, generator=torch.Generator().manual_seed(3))
    spectrum = torch.fft.fft2(noise)
    soft = torch.fft.ifft2(spectrum * _low_pass(256)).real
    return (soft - soft.amin()) / (soft.amax() - soft.amin())


def _low_pass(side: int) -> Tensor:
    f = torch.fft.fftfreq(side)
    return torch.exp(-((f[:, None] ** 2 + f[None] ** 2) / 0.1**2))


def _moved(pictures: Tensor, down: float, right: float) -> Tensor:
    """By the shift theorem, exact for what is periodic."""
    f = torch.fft.fftfreq(pictures.shape[-1])
    turn = torch.exp(-2j * torch.pi * (f[:, None] * down + f[None] * right))
    return torch.fft.ifft2(torch.fft.fft2(pictures) * turn).real


@pytest.mark.parametrize(("down", "right"), [(0, 0), (2, -1), (0.5, 0.25), (-1.7, 3.1)])
@pytest.mark.slow
def test_a_shift_is_found_in_every_tile(textured, down, right):
    found = displacement(_moved(textured, down, right), textured)
    assert found.shape == (4, 4, 4, 2)
    median = typical(found)
    torch.testing.assert_close(
        median, torch.tensor([down, right]).float().expand(4, 4, 2), atol=0.15, rtol=0
    )


@pytest.mark.slow
def test_an_enlargement_grows_from_tile_to_tile(textured):
    """Enlarged from the top left by 1.2 %: a tile whose centre is at x lies 0.012·x further on."""
    at = torch.arange(256) / 1.012 * 2 / 255 - 1
    grid = torch.stack(torch.meshgrid(at, at, indexing="xy"), -1).expand(4, -1, -1, -1)
    enlarged = torch.nn.functional.grid_sample(textured, grid, "bicubic", align_corners=True)
    median = typical(displacement(enlarged, textured))
    centres = 0.012 / 1.012 * (torch.arange(4) * 64 + 31.5)
    torch.testing.assert_close(median[..., 1].mean(0), centres, atol=0.2, rtol=0)
    torch.testing.assert_close(median[..., 0].mean(1), centres, atol=0.2, rtol=0)


def test_other_brightness_and_contrast_move_nothing(textured):
    found = displacement(0.3 + 0.5 * textured, textured)
    assert found.abs().max() == 0


def test_where_nothing_is_to_be_seen_nothing_is_said(textured):
    flat = textured.clone()
    flat[:, :, :64, :64] = 0.5
    found = displacement(textured, flat)
    assert found[:, 0, 0].isnan().all()
    assert not found[:, 1:].isnan().any()
    assert typical(found)[0, 0].isnan().all()
