"""People or background alone: what is drawn, what stays as the photo has it, and what is said."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from skimage.data import astronaut

from support.astronaut_parts import PERSON_OF_MEDIAPIPE, person_and_rest
from support.chromium_page import show
from support.parts_page import CUT, GONE, SAID, draw, negated, opacity, saved

NETWORK = "**/page/selfie_segmentation-*.onnx"


@pytest.mark.parametrize("part", ["people", "background"])
@pytest.mark.campaign
def test_what_is_not_drawn_is_the_photos_own(visit, part):
    at, photo = negated(visit, part, astronaut())
    found = saved(at)
    drawn, left = person_and_rest() if part == "people" else person_and_rest()[::-1]
    assert drawn.mean() > 0.1
    assert left.mean() > 0.1
    assert np.array_equal(found[left], photo[left])
    assert np.array_equal(photo, astronaut())  # at its own size, not the network's
    # Drawn at the network's size, and enlarged by the photo: sharper than enlarged by itself
    # (5.4 levels off for her).
    assert np.abs(found - (255 - photo))[drawn].mean() < 4
    assert np.abs(found - photo)[drawn].mean() > 60


@pytest.mark.campaign
def test_the_part_alone_is_drawn_at_full_size(visit):
    at = visit("?compare=0&strokes=fine")
    large = Image.fromarray(astronaut()).resize((1536, 1536), Image.Resampling.NEAREST)
    show(at, large)
    draw(at, "people")
    at.page.click("#mirror")
    at.settle()
    found, photo = saved(at)[:, ::-1], np.asarray(large).astype(int)
    assert found.shape == photo.shape
    sure, other = (mask.repeat(3, 0).repeat(3, 1) for mask in person_and_rest())
    assert np.array_equal(found[other], photo[other])
    assert np.abs(found - (255 - photo))[sure].max() <= 1  # at its own sharpness


@pytest.mark.slow
def test_the_edge_is_soft_and_mediapipes(visit):
    at, _ = negated(visit, "people", astronaut())
    opaque = opacity(at)
    with Image.open(PERSON_OF_MEDIAPIPE) as mask:
        want = np.asarray(mask.resize(opaque.shape[::-1], Image.Resampling.BILINEAR))
    both, either = ((opaque > 127) & (want > 127)).sum(), ((opaque > 127) | (want > 127)).sum()
    assert both / either > 0.97
    soft = (opaque > 0) & (opaque < 255)
    assert 0.01 < soft.mean() < 0.1


@pytest.mark.campaign
def test_parts_go_with_strength_divider_mirror_and_resolution(visit):
    at, photo = negated(visit, "people", astronaut(), "?size=256&strength=0.5&full=0&beside=1")
    sure, other = person_and_rest()
    found = saved(at)
    assert np.array_equal(found[:, :250], photo[:, :250])  # left of the divider
    right = np.arange(512) > 262
    assert np.abs(found - 127)[sure & right].mean() < 8  # half a picture, half its negative
    assert np.array_equal(found[other & right], photo[other & right])
    at.page.fill("#strength", "100")
    at.page.uncheck("#beside")
    at.page.click("#mirror")
    at.settle()
    assert np.array_equal(saved(at)[:, ::-1][other], photo[other])
    at.page.select_option("#size", "128")
    at.wait("distill.last().then((last) => last.width === 128)")
    at.settle()
    found = saved(at)[:, ::-1]
    assert np.array_equal(found[other], photo[other])
    assert np.abs(found - photo)[sure].mean() > 60


@pytest.mark.slow
def test_everything_again_leaves_nothing_see_through(visit):
    at, photo = negated(visit, "background", astronaut())
    draw(at, "everything")
    assert (opacity(at) == 255).all()
    assert np.abs(saved(at) - photo).mean() > 60
    assert at.page.evaluate("document.querySelector('.viewer.blended')") is None


@pytest.mark.campaign
def test_the_network_comes_once_and_only_where_it_is_wanted(visit):
    asked: list[str] = []
    note = {NETWORK: lambda route: (asked.append(route.request.url), route.continue_())}
    at = visit(routes=note)
    at.settle()
    assert at.page.input_value("#draw") == "everything"
    assert asked == []
    for part in ("people", "background", "everything", "people"):
        draw(at, part)
    assert len(asked) == 1


@pytest.mark.slow
def test_one_failure_does_not_forget_what_was_set_before(visit):
    at = visit()
    draw(at, "people")
    at.page.route(NETWORK, lambda route: route.fulfill(**GONE))
    at.page.reload()
    at.wait(SAID)
    assert at.page.input_value("#draw") == "everything"
    assert at.page.evaluate("localStorage.getItem('distill-lens')") == '{"draw":"people"}'
    at.noise.clear()


@pytest.mark.slow
def test_the_camera_goes_on_while_the_network_comes(visit):
    held: list = []
    routes = {NETWORK: lambda route: held.append(route)}
    at = visit("?compare=0&size=256", camera=True, routes=routes)  # a slow machine's choice is 48
    at.wait("document.getElementById('meter').textContent.includes('FPS')")
    at.page.select_option("#draw", "people")
    at.wait_here(lambda: held)
    at.frames(5)
    assert (opacity(at) == 255).all()
    held[0].continue_()
    at.wait(CUT)
    at.frames(3)
    opaque = opacity(at)
    assert (opaque[:6, :6] == 0).all()  # above her shoulder
    assert 0.2 < (opaque == 255).mean() < 0.8
    assert at.text("message") == ""
