import numpy as np
import pytest
import torch
from PIL import Image
from scipy.ndimage import black_tophat

from distill.core.images import black_hat, luma, to_tensor


def test_luma_of_the_pure_colours():
    colours = torch.eye(3).view(3, 3, 1, 1)
    assert luma(colours).flatten().tolist() == pytest.approx([0.299, 0.587, 0.114])
    grey = torch.full((1, 3, 2, 2), 0.4)
    torch.testing.assert_close(luma(grey), torch.full((1, 1, 2, 2), 0.4))


def test_luma_against_pillow():
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 7, 3), np.uint8))
    expected = torch.from_numpy(np.array(image.convert("L"))).float() / 255
    torch.testing.assert_close(luma(to_tensor(image)[None])[0, 0], expected, atol=1 / 255, rtol=0)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_a_line_has_its_depth_and_its_ground_none(width):
    picture = torch.full((1, 1, 20, 20), 0.9)
    picture[..., 8 : 8 + width] = 0.3
    expected = torch.zeros_like(picture)
    expected[..., 8 : 8 + width] = 0.6
    torch.testing.assert_close(black_hat(picture), expected)


def test_a_wide_band_an_edge_and_a_light_line_have_none():
    picture = torch.full((1, 1, 20, 40), 0.5)
    picture[..., 8:13] = 0.1  # as wide as the square
    picture[..., 20:] = 0.9
    picture[..., 30] = 1.0
    assert black_hat(picture).abs().max() == 0


@pytest.mark.parametrize("side", [3, 5, 7])
def test_against_scipy_up_to_the_border(side):
    grey = torch.rand(2, 1, 23, 31, generator=torch.Generator().manual_seed(0))
    expected = [black_tophat(g[0].numpy(), size=side) for g in grey]
    np.testing.assert_allclose(black_hat(grey, side)[:, 0].numpy(), expected, atol=1e-6)


def test_gradient():
    """Darkening a line by ε adds ε; brightening its ground adds as much, shared by few pixels."""
    picture = torch.full((1, 1, 11, 11), 0.8)
    picture[..., 5] = 0.2
    picture.requires_grad_()
    black_hat(picture).sum().backward()
    torch.testing.assert_close(picture.grad[..., 5], torch.full((1, 1, 11), -1.0))
    assert picture.grad.sum().item() == pytest.approx(0, abs=1e-5)
