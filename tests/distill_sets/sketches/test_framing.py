"""The square around a face: eyes level and where they belong, nothing aliased."""

import math

import numpy as np
import pytest
import torch

from distill.core.images import to_image, to_tensor
from distill.data.photos import centre_square
from distill_sets.sketches.framing import Points, SquareFrame, around_face, cut, in_the_middle

SIZE = 128


def blobs(size, spots, sigma=4.0):
    """A Gaussian at each spot: its centre of mass is the spot."""
    y, x = np.mgrid[:size, :size] + 0.5
    parts = [np.exp(-((x - a) ** 2 + (y - b) ** 2) / (2 * sigma**2)) for a, b in spots]
    return torch.from_numpy(np.stack(parts)).float()


def centre(picture):
    """The centre of mass in pixels from the upper left corner."""
    weights = picture.double() / picture.sum()
    at = torch.arange(len(picture)) + 0.5
    return float((weights.sum(0) * at).sum()), float((weights.sum(1) * at).sum())


@pytest.mark.parametrize("degrees", [0, 17, -40, 90, 180])
@pytest.mark.parametrize("distance", [30, 160])
def test_eyes_are_level_and_where_they_belong(degrees, distance):
    turn, middle = math.radians(degrees), (330.3, 290.8)
    half = (distance / 2 * math.cos(turn), distance / 2 * math.sin(turn))
    left, right = ((middle[0] + s * half[0], middle[1] + s * half[1]) for s in (-1, 1))
    points = Points(left, right, middle)
    frame = around_face(points, side=3.0, eyes=0.4)
    seen = cut(blobs(640, [left, right]), frame, SIZE, 0.0)
    wanted = [((0.5 + s / 6) * SIZE, 0.4 * SIZE) for s in (-1, 1)]
    for eye, spot, expected in zip(seen, (left, right), wanted, strict=True):
        assert frame.place(spot, SIZE) == pytest.approx(expected)
        assert centre(eye) == pytest.approx(expected, abs=0.1)


def test_the_middle_s_square_is_pillow_s():
    rng = np.random.default_rng(0)
    coarse = torch.from_numpy(rng.random((1, 3, 9, 12))).float()
    photo = torch.nn.functional.interpolate(coarse, (300, 400), mode="bicubic")[0].clamp(0, 1)
    frame = in_the_middle(400, 300, 0.8)
    assert frame == SquareFrame(200, 150, 240)
    expected = to_tensor(centre_square(to_image(photo), SIZE, 0.8))
    assert (cut(photo, frame, SIZE, 1.0) - expected).abs().max() < 0.03


@pytest.mark.parametrize("factor", [1, 3, 9])
def test_fine_stripes_become_grey(factor):
    side = SIZE * factor
    stripes = (torch.arange(side) % 2).float().expand(1, side, side).contiguous()
    seen = cut(stripes, SquareFrame(side / 2, side / 2, side), SIZE, 0.0)[:, 8:-8, 8:-8]
    if factor == 1:
        assert torch.equal(seen, stripes[:, 8:-8, 8:-8])
    else:
        assert (seen - 0.5).abs().max() < 0.2


def test_beyond_the_picture():
    grey = torch.full((1, 100, 100), 0.5)
    corner = SquareFrame(0, 0, 100)
    white, black, edge = (cut(grey, corner, 64, v) for v in (1.0, 0.0, None))
    assert white[0, 8, 8] == 1
    assert black[0, 8, 8] == 0
    for seen in (white, black):
        torch.testing.assert_close(seen[0, 36:, 36:], torch.full((28, 28), 0.5))
    torch.testing.assert_close(edge, torch.full((1, 64, 64), 0.5))


def test_a_small_part_of_a_large_picture_is_cut_alone():
    photo = torch.rand(3, 200, 900)
    frame = SquareFrame(700, 90, 50, 0.3)
    torch.testing.assert_close(
        cut(photo, frame, 64, 1.0),
        cut(photo[:, :, 600:], SquareFrame(100, 90, 50, 0.3), 64, 1.0),
        atol=1e-4, rtol=0,
    )  # fmt: skip
