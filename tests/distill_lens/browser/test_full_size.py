"""An opened picture saved at its own size: drawn in tiles, as distill.stylize does, or enlarged."""

import numpy as np
import pytest
from PIL import Image
from skimage.data import astronaut

from distill.models import zoo
from distill.stylize import render
from distill.stylize.stylizing import open_student
from support.chromium_page import CLIP, download, encoded, show

WORKING = "!document.getElementById('save-progress').hidden"


def photo(size: tuple[int, int]) -> Image.Image:
    """The astronaut's middle in that shape, enlarged."""
    width, height = size
    scale = 480 / max(size)
    box = (16, 16, 16 + width * scale, 16 + height * scale)
    return Image.fromarray(astronaut()).resize(size, Image.Resampling.BICUBIC, box=box)


def draw(at, style: str) -> None:
    at.page.check(f"input[value={style}]", force=True)
    at.wait(f"document.getElementById('tag').textContent.toLowerCase() === '{style}'")


def levels(picture: Image.Image) -> np.ndarray:
    return np.asarray(picture.convert("RGB")).astype(int)


@pytest.mark.parametrize("size", [(1500, 1333), (300, 700)])  # six tiles; one
@pytest.mark.campaign
def test_it_is_what_stylize_draws_in_tiles(visit, size):
    at = visit("?compare=0&strokes=fine")
    draw(at, "hayao")
    picture = photo(size)
    show(at, picture)
    saved = levels(download(at.page, "#save"))
    student = open_student(zoo.find("hayao"), 1)
    expected = levels(render.stylise_rgb(picture, student, upscale="tiles"))
    assert saved.shape == expected.shape
    off = np.abs(saved - expected)
    assert off.max() <= 2
    assert (off > 1).mean() < 1e-4
    width, height = size
    assert at.text("message") == f"The picture is saved at {width} × {height}."


def test_both_kinds_of_strokes_are_seen_before(visit):
    at = visit("?compare=0")
    show(at, halves((2000, 1500)))
    at.page.click("#strokes-both summary")
    for strokes in ("shown", "fine"):
        at.wait(f"document.getElementById('strokes-{strokes}').naturalWidth === 256")
    assert download(at.page, "#save").size == (2000, 1500)
    show(at, halves((40, 30)))
    assert at.page.is_hidden("#strokes-both")  # there is no more than what is shown


def test_a_network_of_one_size_says_what_it_gives(visit):
    at = visit("?compare=0")
    draw(at, "stiff")
    show(at, halves((1500, 900)))
    assert at.page.is_hidden("#strokes-row")
    assert at.text("save-gives") == (
        "Save gives 1500 × 900 pixels: stiff draws 64 × 64 and no more, "
        "which are enlarged along the photo."
    )
    saved = levels(download(at.page, "#save"))
    assert saved.shape == (900, 1500, 3)
    assert np.abs(saved[:, :920] - (0, 255, 255)).max() <= 3
    assert np.abs(saved[:, 1080:] - (255, 255, 0)).max() <= 3


def halves(size: tuple[int, int]) -> Image.Image:
    """Red on the left, a third of blue on the right."""
    picture = Image.new("RGB", size, (255, 0, 0))
    picture.paste((0, 0, 255), (size[0] * 2 // 3, 0, *size))
    return picture


def test_it_is_looked_at_as_on_the_screen(visit):
    at = visit("?strength=0.5&beside=1&strokes=fine")
    show(at, halves((1500, 900)))
    at.page.click("#mirror")
    at.settle()
    saved = levels(download(at.page, "#save"))
    assert saved.shape == (900, 1500, 3)
    assert np.abs(saved[:, :480] - (0, 0, 255)).max() == 0  # the photo, mirrored
    assert np.abs(saved[:, 520:740] - (255, 0, 0)).max() == 0
    assert (saved[:, 749:751] == 255).all()  # the divider
    assert np.abs(saved[:, 760:] - (128, 128, 128)).max() <= 1  # half of its negative over it


@pytest.mark.parametrize("way", ["", "&format=jpeg"])
def test_what_is_see_through_stays_so(visit, way):
    """White to the network, half of it its own colours, as in distill.stylize; always PNG."""
    at = visit(f"?compare=0&strokes=fine{way}")
    picture = Image.new("RGBA", (500, 399), (255, 0, 0, 255))
    picture.paste((9, 9, 9, 0), (0, 0, 200, 399))
    picture.paste((0, 0, 255, 128), (200, 0, 300, 399))
    show(at, picture)
    at.page.click("#mirror")
    at.settle()
    assert "As PNG" in at.text("save-gives")
    saved = np.asarray(download(at.page, "#save").transpose(0)).astype(int)
    assert saved.shape == (399, 500, 4)
    assert (saved[..., 3] == np.asarray(picture)[..., 3]).all()
    assert np.abs(saved[:, 310:, :3] - (0, 255, 255)).max() == 0
    assert np.abs(saved[:, 210:290, :3] - (255, 255, 0)).max() <= 2  # of colours times opacity


def test_what_is_hardly_seen_keeps_its_colours(visit):
    """A canvas of bytes would give the network noise there: it keeps colours times opacity."""
    at = visit("?compare=0", size="")
    draw(at, "hayao")
    picture = photo((300, 240)).convert("RGBA")
    picture.putalpha(Image.linear_gradient("L").resize(picture.size))
    show(at, picture)
    saved = np.asarray(download(at.page, "#save")).astype(int)
    expected = np.asarray(render.stylise(picture, open_student(zoo.find("hayao"), 1))).astype(int)
    assert (saved[..., 3] == expected[..., 3]).all()
    over_white = [(255 - each[..., :3]) * each[..., 3:] / 255 for each in (saved, expected)]
    assert np.abs(over_white[0] - over_white[1]).max() <= 2


# Opening and saving wait for the file to be decoded, which takes seconds of a very large one.
SLOW_DECODER = """const decode = createImageBitmap;
window.gate = Promise.resolve();
window.createImageBitmap = async (what, ...more) => {
  if (what instanceof Blob) await gate;
  return decode(what, ...more);
};"""
CLOSE = "window.gate = new Promise((open) => (window.open_gate = open)), 0"


def test_a_large_picture_shows_that_it_is_on_its_way(visit):
    at = visit("?compare=0", script=SLOW_DECODER)
    at.page.evaluate(CLOSE)
    content = encoded(halves((60, 40)))
    at.page.set_input_files("#file", {"name": "a.png", "mimeType": "", "buffer": content})
    at.wait("!document.getElementById('loading').hidden")
    at.page.evaluate("open_gate()")
    at.wait("document.getElementById('save-gives').textContent.includes('60 × 40')")
    at.wait("document.getElementById('loading').hidden")
    at.settle()
    at.page.evaluate(CLOSE)
    at.page.click("#save")
    at.wait(WORKING)
    assert at.text("save") == "Cancel"
    at.page.click("#save")
    at.page.evaluate("open_gate()")
    at.wait(f"!({WORKING})")
    assert at.text("message") == ""
    assert at.text("save") == "Save"


SIZES = [(199, 201), (1, 1)]
MORE = [pytest.param(s, marks=pytest.mark.campaign) for s in ((512, 512), (500, 333), (1000, 40))]


@pytest.mark.parametrize("size", SIZES + MORE)
def test_a_picture_is_saved_at_its_own_size_as_stylize_draws_it(visit, size):
    """Whatever its sides, with nothing picked: the network's padding is cut off."""
    at = visit("?compare=0", size="")
    draw(at, "hayao")
    picture = photo(size)
    show(at, picture, "my.holiday.png")
    assert at.text("save-gives") == "Save gives {} × {} pixels.".format(*size)
    with at.page.expect_download() as found:
        at.page.click("#save")
    assert found.value.suggested_filename == "my.holiday-hayao.png"
    saved = Image.open(found.value.path())
    assert saved.size == size
    expected = render.stylise_rgb(picture, open_student(zoo.find("hayao"), 1))
    off = np.abs(levels(saved) - levels(expected))
    assert off.max() <= 2
    assert (off > 1).mean() < 1e-4
    assert at.text("message") == "The picture is saved at {} × {}.".format(*size)


def test_a_palette_that_is_predicted_of_the_picture_is_that_of_stylize(visit):
    """It turns on fractions of a level of the thumbnail."""
    at = visit("?compare=0", size="")
    at.page.set_input_files("#file", zoo.find("poster"))
    at.wait("document.getElementById('tag').textContent.toLowerCase() === 'poster'")
    picture = photo((900, 700))
    show(at, picture)
    saved = levels(download(at.page, "#save"))
    expected = levels(render.stylise_rgb(picture, open_student(zoo.find("poster"), 1)))
    assert np.abs(saved - expected).max() <= 2


def test_a_frozen_camera_is_saved_at_its_own_size(visit):
    at = visit("?compare=0", camera=True, size="")
    at.wait("!document.getElementById('freeze').hidden")
    at.frames(2)
    assert download(at.page, "#save").size == CLIP
    at.page.click("#freeze")
    at.wait("document.getElementById('freeze').hidden")
    at.settle()
    assert download(at.page, "#save").size == CLIP


# Steps after the second wait for `window.go()`.
HELD = """
const post = Worker.prototype.postMessage;
const going = new Promise((done) => (window.go = done));
let steps = 0;
Worker.prototype.postMessage = function (message, transfer) {
  const late = message.request?.what === "stepFull" && ++steps > 2;
  if (late) going.then(() => post.call(this, message, transfer));
  else post.call(this, message, transfer);
};
"""


def test_the_page_goes_on_meanwhile(visit):
    at = visit("?compare=0&strokes=fine", script=HELD)
    show(at, halves((3000, 1500)))
    with at.page.expect_download() as found:
        at.page.click("#save")
        at.wait(WORKING)
        show(at, Image.new("RGB", (90, 90), (0, 255, 0)))
        photo, _ = at.last()
        assert (photo[0, 1] == 1).all()
        assert at.page.evaluate(WORKING)
        at.page.evaluate("go()")
    saved = levels(Image.open(found.value.path()))
    assert saved.shape == (1500, 3000, 3)
    assert np.abs(saved[:, :1990] - (0, 255, 255)).max() == 0
    assert np.abs(saved[:, 2010:] - (255, 255, 0)).max() == 0


@pytest.mark.campaign
def test_more_than_a_browser_draws_is_saved_smaller(visit):
    at = visit("?compare=0")
    show(at, Image.new("RGB", (6000, 5000), (255, 0, 0)))
    before = at.text("save-gives")
    width, height = download(at.page, "#save").size
    said = f"Save gives {width} × {height} pixels."
    assert before == f"{said} This browser draws no more; the picture has 6000 × 5000."
    assert 24e6 < width * height <= 5120 * 5120
    assert width / height == pytest.approx(1.2, abs=0.001)
    assert at.text("message") == f"The picture is saved at {width} × {height}."


def test_why_it_was_not_drawn_is_said(visit):
    script = (
        "createImageBitmap = ((make) => (what, ...how) => window.broken && what instanceof Blob"
    )
    script += " ? Promise.reject(new Error('too large')) : make(what, ...how))(createImageBitmap);"
    at = visit("?compare=0", script=script)
    show(at, halves((1500, 900)))
    at.page.evaluate("window.broken = true")
    at.page.click("#save")
    at.wait("document.getElementById('message').textContent !== ''")
    assert at.text("message") == "The picture was not saved: too large."
    assert at.text("save") == "Save"
