"""Shifts of known size, made in the Fourier domain; styles that move nothing."""

import numpy as np
import pytest
from PIL import Image, ImageFilter
from scipy import ndimage
from skimage import data, feature

from distill.data.shifts import FARTHEST, SIDE, register
from support.textures import texture


@pytest.mark.parametrize(
    ("down", "right", "shifted"),
    [(0, 0, False), (3, -2, True), (0.4, 0.7, False), (-5.35, 6.2, True)],
)
def test_a_known_shift(down, right, shifted):
    registration = register(texture(1), texture(1, down, right))
    assert registration.down == pytest.approx(down, abs=0.02)
    assert registration.right == pytest.approx(right, abs=0.02)
    assert registration.agreement > 0.95
    assert (registration.fits, registration.shifted) == (True, shifted)


def test_colours_do_not_matter_but_where_edges_are():
    """A negative has the same edges; so has a drawing in other colours."""
    registration = register(texture(2), 255 - texture(2, 2, 3) // 2)
    assert (registration.down, registration.right) == pytest.approx((2, 3), abs=0.02)
    assert registration.agreement > 0.9


def test_another_picture_agrees_with_nothing():
    for seed in range(4, 9):
        registration = register(texture(3), texture(seed))
        assert registration.agreement < 0.1
        assert not registration.fits
        assert not registration.shifted


def test_what_lies_further_off_is_another_picture():
    registration = register(texture(1), texture(1, FARTHEST + 3, 0))
    assert (registration.down, registration.right, registration.agreement, registration.fits) == (
        0,
        0,
        0,
        False,
    )


def test_a_flat_picture_agrees_with_nothing():
    flat = np.full((256, 256, 3), 77, np.uint8)
    for pair in ((flat, flat), (texture(1), flat)):
        registration = register(*pair)
        assert (
            registration.down,
            registration.right,
            registration.agreement,
            registration.fits,
        ) == (0, 0, 0, False)


def photo(name):
    with Image.fromarray(getattr(data, name)()) as whole:
        return whole.resize((SIDE, SIDE), Image.Resampling.LANCZOS)


def contours(picture, width, origin=(0, 0)):
    """Black lines `width` pixels wide on white along Canny's edges: about them, or to one side."""
    edges = feature.canny(np.asarray(picture.convert("L")) / 255, 2)
    lines = ndimage.maximum_filter(edges, width, origin=origin)
    return np.repeat(255 * ~lines[..., None], 3, 2).astype(np.uint8)


@pytest.mark.parametrize("name", ["astronaut", "chelsea"])
def test_lines_of_any_width_are_no_shift(name):
    for width in (1, 3, 5, 7):
        registration = register(np.asarray(photo(name)), contours(photo(name), width))
        assert (registration.fits, registration.shifted) == (True, False), width


@pytest.mark.parametrize("name", ["astronaut", "chelsea"])
def test_lines_on_one_side_of_their_edges_are_no_shift(name):
    """They are wider to one side: where they were, they still begin."""
    for origin in ((-2, -2), (-2, 0), (0, 2)):
        registration = register(np.asarray(photo(name)), contours(photo(name), 5, origin))
        assert (registration.fits, registration.shifted) == (True, False), origin


@pytest.mark.parametrize("name", ["astronaut", "chelsea"])
def test_lines_that_were_moved_are_shifted(name):
    for width in (1, 3, 5):
        drawing = np.roll(contours(photo(name), width), (-6, 3), (0, 1))
        registration = register(np.asarray(photo(name)), drawing)
        assert (registration.fits, registration.shifted) == (True, True), width
        assert (registration.down, registration.right) == pytest.approx((-6, 3), abs=1.2), width


FILTERS = [
    ImageFilter.CONTOUR,
    ImageFilter.FIND_EDGES,
    ImageFilter.SMOOTH_MORE,
    ImageFilter.MinFilter(5),
    ImageFilter.MaxFilter(5),
    ImageFilter.MedianFilter(7),
]


@pytest.mark.parametrize("name", ["astronaut", "coffee", "chelsea"])
def test_symmetric_filters_are_no_shift(name):
    for each in FILTERS:
        registration = register(np.asarray(photo(name)), np.asarray(photo(name).filter(each)))
        assert (registration.fits, registration.shifted) == (True, False), each
        assert (registration.down, registration.right) == pytest.approx((0, 0), abs=0.8), each
