"""Outputs smaller than the screen: enlarged to its pixels, guided by the photo, on CPU and card."""

import numpy as np
import pytest
from PIL import Image
from skimage.data import astronaut

from support.chromium_page import FLAGS, SLOW, canvas, chromium, noisy_camera, show
from support.guided_filter import guided

# Chromium's emulated card passes for a real one.
CARD = """{
const get = OffscreenCanvas.prototype.getContext;
OffscreenCanvas.prototype.getContext = function (kind, options) {
  return get.call(this, kind, { ...options, failIfMajorPerformanceCaveat: false });
};
const ask = WebGL2RenderingContext.prototype.getParameter;
WebGL2RenderingContext.prototype.getParameter = function (name) {
  const found = ask.call(this, name);
  return /swiftshader/i.test(found) ? "a card" : found;
};
}
"""
# Which results of the worker came as a graphics card's picture.
WATCH = """
window.cards = [];
Object.defineProperty(Worker.prototype, "onmessage", {
  set(take) {
    this.addEventListener("message", (event) => {
      if (event.data.reply?.times) cards.push(event.data.reply.picture !== undefined);
      take(event);
    });
  },
});
"""


def with_card(route) -> None:
    script = route.fetch()
    route.fulfill(response=script, body=CARD + script.text())


def card_browser(playwright):
    flags = [flag for flag in FLAGS if flag != "--disable-gpu"]
    emulated = ["--enable-unsafe-swiftshader", "--use-gl=angle", "--use-angle=swiftshader"]
    return playwright.chromium.launch(executable_path=chromium(), args=[*flags, *emulated])


def test_a_picture_is_enlarged_as_the_guided_filter_does(visit):
    """To the photo's own pixels, of which the screen has more; mirrored too."""
    at = visit("?compare=0&style=hayao", size=128)
    photo = astronaut()[40:440, 40:440]
    show(at, Image.fromarray(photo))
    for mirrored in (False, True):
        if mirrored:
            at.page.click("#mirror")
            at.settle()
        seen, drawn = at.last()
        assert seen.shape == (1, 3, 128, 128)
        found = canvas(at.page, "stylised")
        assert found.shape == (400, 400, 4)
        wanted = guided((photo[:, ::-1] if mirrored else photo).astype(float), seen, drawn)
        assert np.abs(found[..., :3] - wanted).max() <= 1.01
        assert (found[..., 3] == 255).all()


def test_lines_that_the_luma_does_not_tell_stay(visit):
    """Red on green of the same luma: no function of that has them, nor their negative."""
    photo = np.zeros((256, 256, 3), np.uint8)
    photo[..., 1] = 100
    photo[:, 128:132] = (196, 0, 0)  # a pixel of the network's
    at = visit("?compare=0")
    show(at, Image.fromarray(photo))
    reds = at.last()[1][0, 0, 32]
    contrast = reds[20] - reds[32]
    assert contrast > 0.6
    row = canvas(at.page, "stylised")[128, :, 0] / 255
    assert len(row) == 256
    assert row[80] - row[129:131].mean() >= 0.8 * contrast  # a window's mean would leave .2
    assert row[80] - row[120] <= 0.05


@pytest.mark.timeout(2 * SLOW)
@pytest.mark.campaign
def test_a_card_does_the_same(visit, playwright):
    browser = card_browser(playwright)
    size = {"width": 520, "height": 470}  # where 320 pixels are seen: for fewer 256 are drawn
    routes = {"**/page/worker-*.js": with_card}
    at = visit("?compare=0&style=hayao", size=128, browser=browser, routes=routes, script=WATCH,
               viewport=size, ready=False)  # fmt: skip
    at.wait("window.distill !== undefined && distill.speed().frames > 0", patience=SLOW)
    if not at.page.evaluate("cards.at(-1)"):
        pytest.skip("no WebGL, not even emulated")
    side = at.page.evaluate("document.getElementById('viewer').clientWidth")
    photo = Image.fromarray(astronaut()).resize((side, side), Image.Resampling.BICUBIC)
    at.settle(SLOW)
    show(at, photo)
    at.settle(SLOW)
    seen, drawn = at.last()
    found = canvas(at.page, "stylised")
    assert found.shape[1] == side
    off = np.abs(found[..., :3] - guided(np.asarray(photo).astype(float), seen, drawn))
    assert off.max() <= 4  # half floats
    assert off.mean() < 0.6
    assert all(at.page.evaluate("cards"))
    browser.close()


def test_frames_keep_the_cameras_edges_without_halos(visit, playwright, tmp_path):
    """128 pixels of the network over 640: black beside white, five pixels from one to the other."""
    scene = Image.new("RGB", (640, 480), "black")
    scene.paste("white", (322, 0, 640, 480))
    browser = noisy_camera(playwright, tmp_path / "edge.y4m", 0, scene)
    at = visit("?compare=0&steady=0&mirror=0", size=128, camera=True, browser=browser)
    at.wait("document.getElementById('meter').textContent.includes('FPS')")
    at.frames(2)
    assert at.last()[0].shape[3] == 128
    row = canvas(at.page, "stylised")[240, :, :3].mean(1)
    assert len(row) == 640
    edge = int(np.argmax(row < 127))
    assert abs(edge - 322) <= 2
    between = (row > 12) & (row < 243)
    assert between.sum() <= 3  # enlarged by itself, an output's pixel is five of them
    assert row[: edge - 2].min() >= 243
    assert row[edge + 2 :].max() <= 12
    browser.close()
