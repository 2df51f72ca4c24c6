"""Students told of the whole picture: at the screen's pixels, in tiles, live, and own ones."""

import numpy as np
import onnx
import pytest
from PIL import Image
from skimage.data import astronaut

from distill.config.compose import load
from distill.export.onnx import OnnxExporter
from distill_lens import lens_folder, webpage
from distill_lens.server import bind
from distill_lens.settings import Lens
from support.chromium_page import SLOW, show
from support.lens_page import running
from support.statistics_students import statistics_student


@pytest.fixture(scope="session")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("told") / "told.onnx"
    onnx.save(OnnxExporter(dynamic=True).export(statistics_student()), path)
    return path


@pytest.fixture(scope="session")
def told(file, folder):
    """The address of a lens with that student; `folder` knows whether there is a page."""
    settings = load(
        "lens", [f"students=[{file}]", f"output={file.parent / 'lens'}", "port=0"], Lens
    )
    built = lens_folder.build(webpage.find(), lens_folder.choose_students(settings), settings)
    with running(bind(built, settings)) as address:
        yield address


def photo(width: int, height: int) -> Image.Image:
    return Image.fromarray(astronaut()).resize((width, height), Image.Resampling.BICUBIC)


def test_frames_too(visit, told):
    at = visit("?steady=0", url=told, size=320, camera=True)
    at.wait("document.getElementById('meter').textContent.includes('FPS')")
    at.frames(6)
    photo, output = at.last()
    assert photo.shape == (1, 3, 256, 320)
    assert np.isfinite(output).all()
    assert at.text("message") == ""


# The sides that pictures and frames were drawn at. By `takes(side)` each takes that many ms.
TIMED = """
window.sides = [];
let side; // of the network that is open
const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...given) {
  const { what, size } = message.request ?? {};
  if (what === "open") side = Math.max(size.width, size.height);
  return post.call(this, message, ...given);
};
Object.defineProperty(Worker.prototype, "onmessage", {
  set(take) {
    this.addEventListener("message", (event) => {
      const { reply } = event.data;
      if (reply?.times) {
        sides.push(side);
        reply.times = { prepare: 0, run: window.takes(side), finish: 0, part: 0 };
      }
      take(event);
    });
  },
});
"""


def test_pictures_are_drawn_in_a_draft_and_then_at_the_screens_pixels(visit, told):
    """However long each takes, on a screen of more pixels than CSS pixels."""
    script = f"{TIMED}window.takes = () => 60000;"
    screen = {"device_scale_factor": 1.5, "viewport": {"width": 300, "height": 650}}
    at = visit("?size=auto", url=told, script=script, **screen)
    at.settle()
    for _ in range(2):  # the second one while the first is there in all its pixels
        before = at.page.evaluate("sides.length")
        show(at, photo(1200, 1200))
        assert at.page.evaluate(f"sides.length - {before}") == 2
        draft, last = at.page.evaluate("sides.slice(-2)")
        assert draft == 256
        shown = at.page.evaluate("document.getElementById('viewer').clientWidth * devicePixelRatio")
        assert shown <= last < shown + 32
        assert at.last()[0].shape[3] == last
        assert at.page.evaluate("stylised.width") == last  # not enlarged
    show(at, photo(300, 200))  # has no more than that
    assert 300 <= at.last()[0].shape[3] < 300 + 32


@pytest.mark.timeout(4 * SLOW)
def test_frames_are_as_large_as_20_a_second_allow(visit, told):
    at = visit("?size=auto", url=told, script=f"{TIMED}window.takes = () => 10;", camera=True)
    at.wait("document.getElementById('meter').textContent.includes('FPS')")
    at.page.evaluate("window.takes = (side) => 40 * (side / 384) ** 2")  # 384: 40 ms, 512: 71
    at.wait("sides.at(-1) === 384", patience=SLOW)
    at.page.evaluate("window.takes = (side) => 80 * (side / 384) ** 2")  # 256: 36 ms
    at.wait("sides.at(-1) === 256", patience=SLOW)
    at.page.evaluate("window.takes = () => 10")
    at.wait("sides.at(-1) === 320", patience=SLOW)  # 384 was too slow
    at.page.click("#freeze")  # a picture now: a draft, and what the camera has
    at.wait("document.getElementById('freeze').hidden")
    at.settle()
    assert at.page.evaluate("sides.slice(-2)") == [256, 640]
