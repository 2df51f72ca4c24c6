"""The page's drawing mode in a real browser: its networks give the sketch's negative."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from distill.config.compose import load
from distill.core.onnx_files import ABOUT, note
from distill_lens import lens_folder, webpage
from distill_lens.settings import Lens
from support.chromium_page import canvas, download, encoded
from support.lens_page import serving
from support.onnx_networks import negative

SIDE = 256


@pytest.fixture
def at(visit):
    found = visit()
    found.page.click("#view-sketch")
    found.page.click("#clear")  # the example
    return found


def stroke(at, *points: tuple[float, float], steps: int = 1) -> None:
    """Drag over the paper; points are shares of its side."""
    box = at.page.locator("#paper").bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
    at.page.mouse.move(*places[0])
    at.page.mouse.down()
    for place in places[1:]:
        at.page.mouse.move(*place, steps=steps)
    at.page.mouse.up()


def sketch(at) -> np.ndarray:
    """What the network saw at last, (256, 256): 1 on paper, 0 on a line."""
    at.settle()
    photo, output = at.last()
    assert np.abs(output[:, :3] - (1 - photo)).max() < 1e-5
    return photo[0, 0]


def test_strokes_are_the_networks_input_and_have_no_gaps(at):
    stroke(at, (0.1, 0.5), (0.9, 0.5))  # one jump of the mouse
    at.wait("distill.last().then((l) => l.width === 256)")
    seen = sketch(at)
    assert seen[:120].min() == seen[136:].min() == 1
    assert (seen[:, 30:226].min(axis=0) < 0.6).all()
    assert 1 - seen[:, 128].mean() == pytest.approx(3 / SIDE, abs=0.3 / SIDE)  # as those trained on


def test_a_click_is_a_dot(at):
    stroke(at, (0.5, 0.5))
    at.wait("distill.last().then((l) => l.width === 256)")
    assert (1 - sketch(at)).sum() == pytest.approx(1.5**2 * np.pi, rel=0.2)  # a disc


@pytest.mark.campaign
def test_undo_eraser_and_clear(at):
    assert at.page.is_disabled("#save-sticker")
    stroke(at, (0.1, 0.3), (0.9, 0.3))
    at.wait("distill.last().then((l) => l.width === 256)")
    one = sketch(at)
    stroke(at, (0.1, 0.7), (0.9, 0.7))
    two = sketch(at)
    assert two[170:190].min() < 0.6
    at.page.keyboard.press("Control+z")
    assert np.array_equal(sketch(at), one)
    at.page.click("#eraser")
    stroke(at, (0.5, 0.1), (0.5, 0.9))
    assert sketch(at)[:, 124:132].min() == 1
    at.page.click("#undo")
    assert np.array_equal(sketch(at), one)
    at.page.click("#clear")
    assert at.page.is_visible("#hint")
    assert not canvas(at.page, "strokes")[..., 3].any()
    at.page.click("#undo")
    assert np.array_equal(sketch(at), one)
    assert canvas(at.page, "strokes")[..., 3].any()


def test_the_sticker_is_as_see_through_as_the_network_makes_it(at):
    at.page.locator("#width").fill("8")
    stroke(at, (0.1, 0.5), (0.9, 0.5))
    at.wait("distill.last().then((l) => l.width === 256)")
    sketch(at)
    sticker = np.asarray(download(at.page, "#save-sticker"))
    assert sticker.shape == (SIDE, SIDE, 4)
    assert tuple(sticker[128, 128]) == (255, 255, 255, 255)  # black ink's negative, opaque
    assert sticker[20, 20, 3] == 0
    at.page.check("input[value=paint]", force=True)
    at.wait("distill.last().then((l) => l.channels === 3)")
    at.settle()
    opaque = np.asarray(download(at.page, "#save-sticker").convert("RGBA"))
    assert tuple(opaque[20, 20]) == (0, 0, 0, 255)


def test_pictures_come_at_the_chosen_rate(at):
    """Eight a second, and the last strokes get theirs; the page's clock is the test's."""
    at.settle()
    at.page.clock.install(time=0)
    at.page.clock.pause_at(1)
    before = at.page.evaluate("distill.speed().frames")
    stroke(at, (0.1, 0.1), (0.2, 0.1))  # inferred at once
    at.wait(f"distill.speed().frames === {before + 1}")
    for more in (2, 3):
        stroke(at, (0.2, 0.1 * more), (0.8, 0.6), steps=5)
        at.page.clock.run_for(1000 / 8 - 1)
        assert (
            at.page.evaluate("distill.last().then(() => distill.speed().frames)")
            == before + more - 1
        )
        assert at.page.is_disabled("#save-sticker")  # the last strokes are not in it
        at.page.clock.run_for(1)
        at.wait(f"distill.speed().frames === {before + more}")
        assert at.page.is_enabled("#save-sticker")
    at.page.clock.run_for(1000)  # nothing new
    assert not at.page.evaluate("distill.busy()")
    assert at.page.evaluate("distill.speed().frames") == before + 3


def test_the_outline_is_for_the_eye_only(at):
    at.wait("outline.width > 0 && outline.width === outline.height")  # the view is laid out
    assert canvas(at.page, "outline")[..., 3].any()
    stroke(at, (0.02, 0.02), (0.05, 0.02))
    at.wait("distill.last().then((l) => l.width === 256)")
    assert sketch(at)[20:].min() == 1
    at.page.click("#trace")
    assert at.page.is_hidden("#outline")


def test_what_undo_brings_back_fits_another_networks_paper(at):
    stroke(at, (0.1, 0.5), (0.9, 0.5))
    at.wait("distill.last().then((l) => l.width === 256)")
    at.page.click("#clear")
    at.page.check("input[value=chalk]", force=True)
    at.page.click("#undo")
    at.wait("distill.last().then((l) => l.width === 128)")
    photo, _ = at.last()
    assert (photo[0, 0, 60:68, 15:113].min(axis=0) < 0.8).all()
    assert photo[0, 0, 80:].min() == 1


@pytest.mark.parametrize("network", ["pencil", "chalk"])
def test_it_begins_with_a_face_that_one_tap_clears(visit, network):
    """Its lines are as wide as those that a network of any side is trained on."""
    at = visit(f"?sketch={network}")
    at.page.click("#view-sketch")
    at.wait("!document.getElementById('save-sticker').disabled")  # it is drawn without a touch
    seen = sketch(at)
    side = len(seen)
    ink = 1 - seen
    # Its chin, the lowest line in the middle: 3 of 256.
    assert ink[round(0.8 * side) : round(0.95 * side), side // 2].sum() == pytest.approx(
        3 * side / 256, abs=0.3
    )
    assert np.abs(ink[: side // 2] - ink[: side // 2, ::-1]).max() > 0.5  # a parting
    mouth = slice(round(0.5 * side), round(0.85 * side))
    assert np.abs(ink[mouth] - ink[mouth, ::-1]).max() < 0.3  # else the same on both sides
    assert at.page.is_disabled("#undo")
    at.page.click("#clear")
    assert not inked(at)
    assert at.page.is_visible("#hint")
    at.page.click("#undo")
    assert inked(at)


PAIRS = {(1440, 900): "beside", (390, 844): "under", (844, 390): "beside", (820, 1180): "under"}


@pytest.mark.parametrize(("width", "height"), PAIRS)
def test_paper_output_and_tools_fit_the_screen(visit, width, height):
    at = visit(viewport={"width": width, "height": height})
    at.page.click("#view-sketch")
    places = ("#paper", ".sticker", "#save-sticker")
    paper, output, save = (at.page.locator(place).bounding_box() for place in places)
    where = "beside" if output["x"] >= paper["x"] + paper["width"] else "under"
    assert where == PAIRS[width, height]
    if where == "under":
        assert output["y"] >= paper["y"] + paper["height"]
    assert output["width"] == paper["width"] == pytest.approx(paper["height"], abs=1)
    assert paper["width"] > 0.33 * max(width, height) or where == "beside"
    assert paper["width"] > 230
    assert save["y"] + save["height"] <= height


INK = "distill.last().then((l) => l?.width === 256 && l.input.some((value) => value < 0.5))"


def inked(at) -> bool:
    """Whether there is anything on the paper as the user sees it."""
    return bool(canvas(at.page, "strokes")[..., 3].any())


def test_redo_brings_back_what_undo_took(at):
    assert at.page.is_disabled("#redo")
    stroke(at, (0.1, 0.3), (0.9, 0.3))
    at.wait(INK)
    one = sketch(at)
    stroke(at, (0.1, 0.7), (0.9, 0.7))
    two = sketch(at)
    at.page.click("#undo")
    at.page.click("#undo")
    at.page.click("#redo")
    assert np.array_equal(sketch(at), one)
    at.page.click("#redo")
    assert np.array_equal(sketch(at), two)
    assert at.page.is_disabled("#redo")
    at.page.click("#undo")
    stroke(at, (0.5, 0.8), (0.6, 0.8))  # another way: nothing to bring back any more
    assert at.page.is_disabled("#redo")


# As browsers tell them: with Caps Lock the letters are capitals, and Shift makes them small again.
@pytest.mark.parametrize("caps", [pytest.param(False, marks=pytest.mark.campaign), True])
def test_undo_and_redo_by_keys_whatever_caps_lock_says(at, caps):
    def press(letter: str, shift: bool = False) -> None:
        key = letter.upper() if caps != shift else letter
        at.page.evaluate(
            "([key, shiftKey]) => document.body.dispatchEvent(new KeyboardEvent('keydown',"
            " { key, shiftKey, ctrlKey: true, bubbles: true, cancelable: true }))",
            [key, shift],
        )

    stroke(at, (0.1, 0.3), (0.9, 0.3))
    assert inked(at)
    for redo in (("z", True), ("y",)):
        press("z")
        assert not inked(at)
        press(*redo)
        assert inked(at)


def test_drawing_by_keyboard(at):
    at.page.focus("#paper")
    at.page.keyboard.press("Shift+ArrowLeft")  # from the middle to 0.4
    at.page.keyboard.press("Space")
    assert at.text("pen-state") == "Pen down."
    for _ in range(3):
        at.page.keyboard.press("Shift+ArrowRight")
    at.page.keyboard.press("ArrowRight")  # to 0.72
    at.page.keyboard.press("Space")
    at.page.keyboard.press("Shift+ArrowDown")  # lifted: no ink
    at.wait(INK)
    seen = sketch(at)
    rows, columns = np.nonzero(seen < 0.7)
    assert set(rows) <= {126, 127, 128, 129}
    assert (columns.min(), columns.max()) == pytest.approx((0.4 * SIDE, 0.72 * SIDE), abs=2)
    at.page.keyboard.press("Control+z")
    assert not inked(at)


def of_sketches(tmp_path, about: str) -> Path:
    """A page with nothing but a network of sketches that says that about itself."""
    network = negative(channels=4, side=256)
    note(network.model, ABOUT, about)
    network.save(str(tmp_path / "pencil.onnx"))
    one = f"sketches=[{tmp_path / 'pencil.onnx'}]"
    settings = load("lens", ["students=[]", one, f"output={tmp_path / 'built'}"], Lens)
    return lens_folder.build(webpage.find(), lens_folder.choose_students(settings), settings)


def test_a_network_of_cats_begins_with_an_empty_paper(visit, tmp_path):
    with serving(of_sketches(tmp_path, '{"style": "cats"}')) as server:
        at = visit(ready=False, url=f"http://127.0.0.1:{server.server_port}/")
        at.wait("window.distill !== undefined")
        assert not inked(at)
        assert at.page.is_visible("#hint")
        assert not at.page.is_visible("#trace")


def test_a_picture_dropped_on_a_page_of_sketches_is_taken(visit, tmp_path):
    with serving(of_sketches(tmp_path, "{}")) as server:
        at = visit(ready=False, url=f"http://127.0.0.1:{server.server_port}/")
        at.wait("window.distill !== undefined")
        at.settle()
        bands = Image.new("RGB", (100, 50), "white")
        bands.paste((0, 0, 0), (0, 0, 50, 50))
        drop(at, bands)  # in the place of the example
        at.wait(f"distill.last().then((l) => l?.input[{128 * SIDE + 20}] === 0)")
        seen = sketch(at)
        assert seen[70:186, 4:124].max() == 0  # fitted into the paper, not cut: black on the left
        assert seen[70:186, 132:].min() == seen[:60].min() == seen[196:].min() == 1
        at.page.click("#undo")
        assert 0 < (canvas(at.page, "strokes")[..., 3] > 0).mean() < 0.1  # the example is back
        at.page.evaluate(DROP, [[1, 2], "notes.txt"])
        at.wait("document.getElementById('message').textContent.startsWith('notes.txt: no pic')")


DROP = """([bytes, name]) => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array(bytes)], name));
  const event = new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
  document.body.dispatchEvent(event);
}"""


def drop(at, picture: Image.Image) -> None:
    at.page.evaluate(DROP, [list(encoded(picture)), "picture.png"])
