"""Shifts of known size, made in the Fourier domain."""

import numpy as np
import pytest

from distill.data.shifts import FARTHEST, register
from support.textures import texture


@pytest.mark.parametrize(("down", "right"), [(0, 0), (3, -2), (0.4, 0.7), (-5.35, 6.2)])
def test_a_known_shift(down, right):
    found = register(texture(1), texture(1, down, right))
    assert found.down == pytest.approx(down, abs=0.1)
    assert found.right == pytest.approx(right, abs=0.1)
    assert found.agreement > 0.95
    assert np.hypot(found.down, found.right) == pytest.approx(np.hypot(down, right), abs=0.15)


def test_colours_do_not_matter_but_where_edges_are():
    """A negative has the same edges; so has a drawing in other colours."""
    found = register(texture(2), 255 - texture(2, 2, 3) // 2)
    assert (found.down, found.right) == pytest.approx((2, 3), abs=0.1)
    assert found.agreement > 0.9


def test_another_picture_agrees_with_nothing():
    found = [register(texture(3), texture(seed)) for seed in range(4, 9)]
    assert max(abs(each.agreement) for each in found) < 0.35


def test_what_lies_further_off_is_another_picture():
    found = register(texture(1), texture(1, FARTHEST + 3, 0))
    assert (found.down, found.right) == (0, 0)
    assert found.agreement < 0.35


def test_a_flat_picture_agrees_with_nothing():
    flat = np.full((256, 256, 3), 77, np.uint8)
    for pair in ((flat, flat), (texture(1), flat)):
        found = register(*pair)
        assert (found.down, found.right, found.agreement) == (0, 0, 0)
