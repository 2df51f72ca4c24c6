"""The lines of an outline: lengths, widths and marks are counted on painted shapes."""

import math

import numpy as np
import pytest
import torch
from skimage.draw import disk
from skimage.measure import label

from distill_sets.sketches.lines import (
    canny_lines,
    cleared,
    inked,
    long_ones,
    marked,
    network_lines,
    thinned,
)

SIZE = 128
INSIDE = torch.ones(1, SIZE, SIZE)


def disc(radius=40, light=1.0, dark=0.0):
    picture = np.full((SIZE, SIZE), light, np.float32)
    picture[disk((64, 64), radius)] = dark
    return torch.from_numpy(picture).expand(3, -1, -1)


def holes(ink):
    """White areas, of which a page without a closed line has one."""
    return label(ink > 0.5, connectivity=1).max()


def test_a_disc_gives_one_closed_ring():
    lines = canny_lines(disc(), 2.0, 0.1, 0.3, INSIDE)
    assert label(lines, connectivity=2).max() == 1
    rows, columns = np.nonzero(lines)
    np.testing.assert_allclose(np.hypot(rows - 64, columns - 64), 40, atol=1.5)
    page = inked(long_ones(lines, 40), 3.0)
    assert holes(page) == 2
    # A ring of pixels is a staircase, and so up to half a pixel wider than the pen.
    assert 3 <= (1 - page).sum() / (2 * math.pi * 40) <= 3.5


def test_how_steep_a_step_is():
    """A step of 0.1 is 0.1 · 8 / (sigma √2π) steep: 0.16 at sigma 2."""
    step = disc(light=0.6, dark=0.5)
    assert canny_lines(step, 2.0, 0.1, 0.14, INSIDE).any()
    assert not canny_lines(step, 2.0, 0.1, 0.18, INSIDE).any()


def test_weak_edges_count_where_they_join_strong_ones():
    """One bar, dark at one end and pale at the other; and a pale bar of its own."""
    picture = np.ones((SIZE, SIZE), np.float32)
    picture[30:50, 20:108] = np.linspace(0.2, 0.92, 88)
    picture[80:100, 60:100] = 0.88
    lines = canny_lines(torch.from_numpy(picture).expand(3, -1, -1), 2.0, 0.1, 0.3, INSIDE)
    assert lines[25:55, 85:95].any()
    assert not lines[70:].any()


def test_the_photo_s_border_is_no_edge():
    picture, inside = disc(20, dark=0.3).clone(), INSIDE.clone()
    picture[:, :, 100:], inside[:, :, 100:] = 0, 0
    assert not canny_lines(picture, 2.0, 0.1, 0.3, inside)[:, 90:].any()
    assert canny_lines(picture, 2.0, 0.1, 0.3, inside)[:, :90].any()
    assert canny_lines(picture, 2.0, 0.1, 0.3, INSIDE)[:, 90:].any()


def test_short_lines_are_dropped():
    lines = np.zeros((SIZE, SIZE), bool)
    lines[10, 10:49] = True  # 39 pixels
    lines[20, 10:50] = True  # 40
    np.fill_diagonal(lines[60:110, 60:110], True)  # touches by its corners only
    kept = long_ones(lines, 40)
    assert not kept[10].any()
    assert kept[20].sum() == 40
    assert kept[60:].sum() == 50
    assert np.array_equal(long_ones(lines, 0), lines)


@pytest.mark.parametrize("width", [1.0, 3.0, 4.5])
def test_a_line_is_as_wide_as_the_pen(width):
    lines = np.zeros((SIZE, SIZE), bool)
    lines[64] = True
    ink = 1 - inked(lines, width)
    np.testing.assert_allclose(ink.sum(0), width, atol=1e-5)
    assert ink.dtype == np.float32


def test_no_line_leaves_the_page_white():
    assert inked(np.zeros((SIZE, SIZE), bool), 3.0).min() == 1


def test_marks_are_two_circles_and_a_triangle():
    left, right, nose = (44.0, 50.0), (84.0, 50.0), (64.0, 80.0)
    page = marked(np.zeros((SIZE, SIZE), bool), left, right, nose)
    assert label(page, connectivity=2).max() == 3
    assert holes(1.0 - page) == 4
    rows, columns = np.nonzero(page[:60])
    near = np.minimum(*(np.hypot(columns + 0.5 - x, rows + 0.5 - y) for x, y in (left, right)))
    np.testing.assert_allclose(near, 0.2 * 40, atol=1)
    rows, columns = np.nonzero(page[70:])
    assert columns.max() - columns.min() == pytest.approx(0.3 * 40, abs=1)
    assert np.ptp(rows) == pytest.approx(0.3 * 40 * math.sqrt(3) / 2, abs=1)
    assert columns[rows == rows.max()].mean() + 0.5 == pytest.approx(64, abs=1)  # its tip is below


def test_marks_have_room():
    everywhere = np.ones((SIZE, SIZE), bool)
    page = cleared(everywhere, (44.0, 50.0), (84.0, 50.0), (64.0, 80.0))
    assert (~page).sum() == pytest.approx(3 * math.pi * (0.3 * 40) ** 2, rel=0.03)
    assert not page[50, 44]


def test_marks_that_reach_beyond_the_page_are_cut():
    page = marked(np.zeros((SIZE, SIZE), bool), (2.0, 2.0), (126.0, 2.0), (64.0, 127.0))
    assert page.any()


def test_a_ridge_becomes_its_middle_line():
    y = np.arange(SIZE)[:, None]
    ridge = np.exp(-((y - 64) ** 2) / 18).repeat(SIZE, 1).astype(np.float32)
    ridge[50:56, 30] = 0.9  # a bump on its rim
    lines = thinned(ridge, 0.5)
    assert np.abs(np.nonzero(lines)[0] - 64).max() <= 1
    assert (lines.sum(0)[4:-4] == 1).all()


def test_a_network_s_lines_keep_off_the_border():
    """A network that sees an edge wherever its own zero padding would reach, and in the middle."""
    seen = []

    def network(picture):
        seen.append(picture.shape)
        answer = torch.zeros(1, 1, *picture.shape[-2:])
        answer[..., :20, :] = 1
        answer[..., 90:100, :] = 1
        return answer

    lines = network_lines(disc(), network, 0.5, INSIDE)
    assert seen == [(1, 3, SIZE + 64, SIZE + 64)]
    assert set(np.nonzero(lines)[0]) <= set(range(60, 66))
    outside = torch.zeros(1, SIZE, SIZE)
    assert not network_lines(disc(), network, 0.5, outside).any()
