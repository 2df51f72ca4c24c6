"""A student whose colours belong to the size it learnt at keeps them at larger ones, live."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from skimage.data import astronaut

from distill.core.arrays import to_picture
from support.chromium_page import canvas, show

CELLS = (12, 12)  # finer than that, a larger output has details of its own


def wide(picture: np.ndarray) -> np.ndarray:
    """Means of its cells, in levels."""
    image = Image.fromarray(np.ascontiguousarray(picture[..., :3]))
    return np.asarray(image.resize(CELLS, Image.Resampling.BOX)).astype(float)


@pytest.mark.parametrize("size", [384, 512])
@pytest.mark.slow
def test_a_larger_output_has_the_colours_of_the_size_that_was_learnt_at(visit, size):
    at = visit("?compare=0")
    at.page.check("input[value=hayao]", force=True)
    at.page.select_option("#size", "256")
    show(at, Image.fromarray(astronaut()[:400, 56:456]))
    at.wait("distill.last().then((last) => last.width === 256)")
    at.settle()
    expected = wide(canvas(at.page, "stylised"))
    at.page.select_option("#size", str(size))
    at.wait(f"distill.last().then((last) => last.width === {size})")
    at.settle()
    shown = canvas(at.page, "stylised")
    assert shown.shape[:2] == (size - 16, size - 16)
    _, output = at.last()
    own = np.asarray(to_picture(output[0]))[8:-8, 8:-8]
    assert np.abs(wide(shown) - expected).mean() < 1
    assert np.abs(wide(own) - expected).mean() > 5
    # What is fine is the network's own.
    assert (
        np.abs(
            np.diff(shown[..., :3].astype(int), axis=1) - np.diff(own.astype(int), axis=1)
        ).mean()
        < 0.5
    )


@pytest.mark.slow
def test_the_cameras_frames_too_and_steadily(visit):
    at = visit("?steady=0.8&compare=0&style=hayao&size=384", camera=True)
    at.wait("document.getElementById('meter').textContent.includes('FPS')")
    at.frames(3)
    photo, output = at.last()
    assert photo.shape == (1, 3, 288, 384)
    assert at.text("message") == ""
    assert (
        np.abs(wide(canvas(at.page, "stylised")) - wide(np.asarray(to_picture(output[0])))).mean()
        > 2
    )
