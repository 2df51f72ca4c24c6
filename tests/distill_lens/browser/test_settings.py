"""What the user sets: in the address, remembered, forgotten; strength and the divider."""

from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from PIL import Image

from support.chromium_page import canvas, noisy_camera, show

COLOURS = ((250, 10, 10), (10, 250, 10), (10, 10, 250), (240, 240, 20))


def quarters(size=(256, 256)) -> Image.Image:
    """Four colours, so that mirrored and moved pictures differ."""
    picture = Image.new("RGB", size)
    width, height = size[0] // 2, size[1] // 2
    for i, colour in enumerate(COLOURS):
        left, top = width * (i % 2), height * (i // 2)
        picture.paste(colour, (left, top, left + width, top + height))
    return picture


def stored(at):
    return at.page.evaluate("localStorage.getItem('distill-lens')")


def chosen(at):
    return at.page.evaluate("document.querySelector('#styles input:checked').value")


def test_the_address_says_what_is_set(visit):
    at = visit("?style=hayao&size=128&strength=0.35&compare=0")
    assert chosen(at) == "hayao"
    assert at.page.input_value("#size") == "128"
    assert at.last()[0].shape == (1, 3, 64, 128)
    assert at.page.input_value("#strength") == "35"
    assert at.text("strength-value") == "35 %"
    assert at.page.get_attribute("#compare", "aria-pressed") == "false"
    assert not at.page.is_visible("#divider")
    assert stored(at) is None  # another's link changes nothing for the next time


@pytest.mark.campaign
def test_settings_are_remembered_until_they_are_forgotten(visit):
    at = visit("?mirror=1")
    assert stored(at) is None
    at.page.check("input[value=hayao]", force=True)
    at.page.select_option("#size", "192")
    at.page.fill("#strength", "60")
    at.page.click("#compare")
    at.settle()
    at.page.reload()
    at.wait("window.distill !== undefined && distill.speed().frames > 0")
    at.settle()
    assert chosen(at) == "hayao"
    assert at.last()[0].shape == (1, 3, 96, 192)
    assert at.text("strength-value") == "60 %"
    assert not at.page.is_visible("#divider")
    at.page.click("#forget")
    at.wait("document.querySelector('#styles input:checked').value === 'negative'")
    at.settle()
    assert stored(at) is None
    assert at.page.input_value("#size") == "auto"
    assert at.text("strength-value") == "100 %"
    assert at.page.is_visible("#divider")
    assert at.page.evaluate("location.search") == ""
    assert at.text("message") == "The settings are forgotten."


def test_without_any_memory_the_page_works(visit):
    refuse = "throw new DOMException('no', 'SecurityError')"
    at = visit(script=f"Object.defineProperty(self, 'localStorage', {{get() {{ {refuse} }}}})")
    at.page.fill("#strength", "60")
    assert at.text("strength-value") == "60 %"
    at.page.click("#forget")
    assert at.text("strength-value") == "100 %"


def test_a_mirrored_camera_is_remembered_and_a_mirrored_picture_is_not(visit):
    at = visit(camera=True)
    at.wait("document.getElementById('meter').textContent.includes('FPS')")
    at.page.click("#mirror")
    assert stored(at) == '{"mirror":false}'
    at.page.click("#mirror")  # as it was
    assert stored(at) == "{}"
    at.page.click("#camera")
    show(at, quarters())
    at.page.click("#mirror")
    assert stored(at) == "{}"


@pytest.mark.campaign
def test_a_link_carries_the_settings(visit):
    at = visit("?strength=0.5", permissions=["clipboard-read", "clipboard-write"])
    at.page.check("input[value=hayao]", force=True)
    at.page.click("#link")
    at.wait("document.getElementById('message').textContent !== ''")
    link = at.page.evaluate("navigator.clipboard.readText()")
    said = dict(parse_qsl(urlsplit(link).query))
    assert said == {"strength": "0.5", "style": "hayao", "size": "256", "format": "png"}
    other = visit("?" + urlsplit(link).query)
    assert chosen(other) == "hayao"


def test_a_size_that_fails_is_not_tried_again_by_itself(visit):
    small = """const Own = self.OffscreenCanvas;
    self.OffscreenCanvas = class extends Own {
      constructor(width, height) {
        if (Math.max(width, height) > 256) throw new Error("no memory");
        super(width, height);
      }
    };
    """

    def short_of_memory(route):
        script = route.fetch()
        route.fulfill(response=script, body=small + script.text())

    at = visit("?size=auto", routes={"**/page/worker-*.js": short_of_memory})
    at.wait("document.getElementById('message').textContent.includes('no memory')")
    at.settle()
    frames = at.page.evaluate("distill.speed().frames")
    at.page.wait_for_timeout(1500)
    assert at.page.evaluate("distill.speed().frames") == frames
    side = at.page.evaluate("distill.last().then(({ width }) => width)")
    assert at.text("size").splitlines()[0] == f"Automatic ({side} px)"
    assert side <= 256


@pytest.mark.campaign
def test_steadiness_takes_the_noise_of_a_still_scene_away(visit, playwright, tmp_path):
    browser = noisy_camera(playwright, tmp_path / "noise.y4m", 12)

    def flicker(query):
        at = visit(query, camera=True, browser=browser)
        at.wait("document.getElementById('meter').textContent.includes('FPS')")
        at.frames(12)
        shown = []
        for _ in range(5):
            at.frames(2)
            shown.append(canvas(at.page, "stylised")[..., :3].astype(float))
        return np.mean([np.abs(a - b).mean() for a, b in zip(shown, shown[1:], strict=False)])

    plain, steadied = flicker("?steady=0"), flicker("?steady=0.95")
    assert plain > 0.3
    assert steadied < 0.5 * plain


def test_steadiness_is_offered_with_the_camera_and_remembered(visit):
    at = visit(camera=True)
    at.wait("!document.getElementById('steady-row').hidden")
    assert at.text("steady-value") == "80 %"
    at.page.fill("#steady", "30")
    assert stored(at) == '{"steady":0.3}'
    at.page.click("#camera")
    assert at.page.is_hidden("#steady-row")


def test_the_last_picture_is_there_after_a_reload_until_it_is_not_to_be_kept(visit):
    at = visit("?compare=0")
    show(at, quarters((90, 60)), "mine.png")
    for kept in (True, False):
        if not kept:
            at.page.uncheck("#keep")
            at.page.wait_for_timeout(500)
        at.page.reload()
        at.wait("window.distill !== undefined && distill.speed().frames > 0")
        at.settle()
        with at.page.expect_download() as found:
            at.page.click("#save")
        assert found.value.suggested_filename.startswith("mine-" if kept else "example-")
