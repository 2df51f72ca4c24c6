"""What holds for every part drawn alone: settings, failures, backends, films, steadiness."""

import numpy as np
import pytest
from PIL import Image
from skimage.data import astronaut

from support.astronaut_parts import face_and_rest, person_and_rest
from support.chromium_page import noisy_camera, show
from support.parts_page import CUT, GONE, SAID, draw, opacity

PARTS = {"people": person_and_rest, "faces": face_and_rest}
NETWORKS = {
    "people": "**/page/selfie_segmentation-*.onnx",
    "faces": "**/page/blazeface_short_range-*.onnx",
}
UNKNOWN = {
    "people": "People cannot be told from the background: ",
    "faces": "Faces cannot be told from the rest: ",
}
BROKEN = {
    "missing": (GONE, "did not arrive: the server answers 404"),
    "damaged": ({"body": b"no network"}, ""),
}


def test_an_unknown_part_of_a_link_is_everything(visit):
    assert visit("?draw=hands").page.input_value("#draw") == "everything"


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.campaign
def test_without_its_network_everything_is_drawn_and_said(visit, part, how):
    reply, words = BROKEN[how]
    at = visit()
    show(at, Image.fromarray(astronaut()))  # a person, and a face
    at.page.route(NETWORKS[part], lambda route: route.fulfill(**reply))
    at.page.select_option("#draw", part)
    at.wait(SAID)
    assert at.text("message").startswith(UNKNOWN[part])
    assert words in at.text("message")
    assert at.text("message").endswith(". Everything is drawn.")
    assert at.page.input_value("#draw") == "everything"
    assert at.page.evaluate("localStorage.getItem('distill-lens')") is None
    at.settle()
    assert (opacity(at) == 255).all()
    at.page.unroute(NETWORKS[part])
    draw(at, part)  # asked for again
    assert at.text("message") == ""
    assert opacity(at).min() == 0
    at.noise.clear()  # what the browser and ONNX Runtime tell the console


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.campaign
def test_a_still_scenes_edge_is_steady(visit, playwright, tmp_path, part):
    browser = noisy_camera(playwright, tmp_path / "noise.y4m", 5)

    def flicker(query):
        at = visit(f"{query}&size=256&draw={part}", camera=True, browser=browser)
        at.wait("document.getElementById('meter').textContent.includes('FPS')")
        at.wait(CUT)
        at.frames(12)
        seen = []
        for _ in range(5):
            at.frames(2)
            seen.append(opacity(at).astype(float))
        return np.mean([np.abs(a - b).mean() for a, b in zip(seen, seen[1:], strict=False)])

    plain, steadied = flicker("?steady=0"), flicker("?steady=0.95")
    assert plain > 0.05
    assert steadied < 0.5 * plain
