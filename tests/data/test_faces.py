import numpy as np
import pytest
from skimage import data

from distill.data.faces import lbp_faces


def test_the_astronaut_s_face():
    """Her forehead starts near row 75, her chin ends near 160; the face spans 185 to 260."""
    box = lbp_faces(data.astronaut())[0].box
    assert 55 <= box.top <= 85
    assert 150 <= box.top + box.height <= 185
    assert 165 <= box.left <= 195
    assert 250 <= box.left + box.width <= 290


def test_the_largest_of_two_faces():
    """The same face at half its size beside it changes nothing."""
    photo = data.astronaut()[:256, 100:356]
    alone = lbp_faces(photo)[0].box
    half = photo[::2, ::2]
    both = np.concatenate([photo, np.pad(half, ((0, 128), (0, 0), (0, 0)))], axis=1)
    found = lbp_faces(both)[0].box
    np.testing.assert_allclose(found, alone, atol=8)


@pytest.mark.parametrize("shape", [(256, 256, 3), (64, 90, 3), (10, 10, 3)])
def test_no_face_in_a_flat_picture(shape):
    assert lbp_faces(np.full(shape, 128, np.uint8)) == []


@pytest.mark.parametrize("name", ["chelsea", "coffee"])
def test_no_face_in_a_cat_or_a_cup(name):
    assert lbp_faces(getattr(data, name)()) == []
