"""What faces wear on the page: stickers of distill.stylize, on pictures, in films and files."""

import json

import numpy as np
import pytest
from PIL import Image, ImageDraw
from skimage.data import astronaut, coffee

from distill.data.faces import BlazeFace
from distill.stylize import stickers
from distill.stylize.stylizing import open_student
from support.chromium_page import canvas, encoded, show
from support.onnx_networks import negative
from support.parts_page import saved

BLUE = (20, 60, 120)
SAID = "document.getElementById('message').textContent"


def wear(at, *names):
    """Tick stickers, and wait until they are worn."""
    at.settle()
    for name in names:
        seen = at.page.evaluate("distill.speed().frames")
        at.page.click(f"#wear label:has([value={name}])")
        at.wait(f"distill.speed().frames > {seen}")
        at.settle()


# Where the worker saw the marks of the last picture's faces, as shares of it.
MARKS = """
Object.defineProperty(Worker.prototype, "onmessage", {
  set(take) {
    this.addEventListener("message", (event) => {
      if (event.data.reply?.marks) window.marks = event.data.reply.marks;
      take(event);
    });
  },
});
"""


@pytest.mark.parametrize("mirrored", [pytest.param(False, marks=pytest.mark.campaign), True])
@pytest.mark.parametrize("size", [512, pytest.param(1024, marks=pytest.mark.campaign)])
def test_a_picture_wears_what_stylize_puts_on(visit, size, mirrored):
    """Several at once, at the size of the screen and at the file's own."""
    at = visit("?compare=0&size=256&strength=0.5", script=MARKS)
    photo = Image.fromarray(astronaut()[:260, 110:370]).resize((size, size)).rotate(12)
    show(at, photo)
    if mirrored:
        at.page.click("#mirror")
        at.settle()
    plain = saved(at)
    assert plain.shape == (size, size, 3)
    wear(at, "hair", "glasses")
    found = saved(at)
    (seen,) = at.page.evaluate("marks")
    face = {name: size * complex(*place) for name, place in seen.items()}
    turned = photo.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else photo
    (python,) = BlazeFace()(np.asarray(turned))
    apart = abs(face["left_eye"] - face["right_eye"])
    off = [abs(at - face[name]) / apart for name, at in python.marks.items()]
    assert np.mean(off) < 0.25  # its detector looks at parts of a picture, too
    page = Image.fromarray(plain.astype(np.uint8)).convert("RGBA")
    for name in ("hair", "glasses"):
        stickers.lay(page, stickers.read_sticker(name), face, stickers.facing(face))
    wanted = np.asarray(page.convert("RGB")).astype(int)
    want, got = (np.abs(each - plain).max(2) > 40 for each in (wanted, found))
    assert 0.05 < want.mean() < 0.5
    assert (want & got).sum() / (want | got).sum() > 0.93
    assert at.text("message") == f"The picture is saved at {size} × {size}."
    assert at.page.evaluate("localStorage.getItem('distill-lens')") == '{"wear":"hair,glasses"}'
    wear(at, "hair", "glasses")  # off again
    assert np.abs(saved(at) - plain).max() <= 1


def test_a_picture_without_a_face_wears_nothing_and_says_so(visit):
    at = visit("?compare=0&wear=beard")
    show(at, Image.fromarray(coffee()))
    at.wait(f"{SAID}.startsWith('No face was found')")
    assert canvas(at.page, "worn").shape[:2] == (1, 1)
    assert at.page.is_checked("#wear [value=beard]")
    show(at, Image.fromarray(astronaut()))
    assert at.text("message") == ""
    assert canvas(at.page, "worn")[..., 3].max() == 255


def opaque(at):
    """The share of the camera's picture that what is worn covers, in full opacity."""
    return (canvas(at.page, "worn")[..., 3] > 200).mean()


@pytest.mark.parametrize("which", ["glasses", pytest.param("own", marks=pytest.mark.campaign)])
def test_the_camera_wears_it_and_films_have_it(visit, which):
    av = pytest.importorskip("av", reason="no PyAV: pip install 'distill[video]'")
    at = visit("?compare=0&size=256&sound=0", camera=True)
    at.wait("document.getElementById('meter').textContent.includes('FPS')")
    if which == "own":
        at.page.set_input_files("#wear-file", file("mask.png", encoded(mask(False))))
    else:
        at.page.click("#wear label:has([value=glasses])")
    # It comes within five frames, and a face lost meanwhile begins anew.
    at.wait_here(lambda: opaque(at) > 0.005)
    assert opaque(at) < 0.3
    at.page.click("#record")
    at.wait("document.getElementById('record').getAttribute('aria-pressed') === 'true'")
    at.frames(10)
    with at.page.expect_download() as film:
        at.page.click("#record")
    with av.open(str(film.value.path())) as video:
        frames = np.stack([f.to_ndarray(format="rgb24").astype(int) for f in video.decode(video=0)])
    # The rim is dark and the mask blue, her face in negative is neither.
    colour, near = (BLUE, 40) if which == "own" else ((0, 0, 0), 60)
    height = frames.shape[1]
    there = (np.abs(frames - colour) < near).all(3)[:, height // 5 : 4 * height // 5]
    assert there.mean((1, 2)).max() > 0.003


def file(name, content):
    return {"name": name, "mimeType": "", "buffer": content}


def own(at, *files):
    """Choose a drawing of one's own, and what lies beside it."""
    at.settle()
    at.page.set_input_files("#wear-file", [file(*each) for each in files])


def mask(white: bool) -> Image.Image:
    """Dark shapes around eyes and mouth, on nothing or on white."""
    picture = Image.new("RGBA", (250, 240), "white" if white else (0, 0, 0, 0))
    draw = ImageDraw.Draw(picture)
    for box in ((70, 80, 118, 120), (132, 80, 180, 120), (90, 150, 160, 180)):
        draw.ellipse(box, (*BLUE, 255))
    return picture.convert("RGB") if white else picture


@pytest.mark.parametrize(
    "kind", [pytest.param("clear", marks=pytest.mark.campaign), "anchored", "sketch"]
)
def test_a_drawing_of_one_s_own_is_worn_as_by_stylize(visit, tmp_path, kind):
    """A PNG with transparency, one with its marks beside it, and a sketch that a network draws."""
    at = visit("?compare=0&size=256", script=MARKS)
    show(at, Image.fromarray(astronaut()).resize((1024, 1024)))
    plain = saved(at)
    content = encoded(mask(kind == "sketch"))
    beside = json.dumps({"anchors": {"left_eye": [160, 60], "right_eye": [90, 70]}}).encode()
    own(at, ("mask.png", content), *[("mask.json", beside)][: kind == "anchored"])
    at.wait("document.getElementById('worn').width > 1")
    assert at.text("message") == ""
    assert at.text("wear-own") == "mask.png"
    assert at.page.evaluate("localStorage.getItem('distill-lens')") == "{}"  # no file is kept
    found = saved(at)
    (tmp_path / "mask.png").write_bytes(content)
    negative(channels=4, side=256).save(str(tmp_path / "pencil.onnx"))
    if kind == "anchored":
        (tmp_path / "mask.json").write_bytes(beside)
        sticker = stickers.read_sticker(str(tmp_path / "mask.json"))
    else:
        model = open_student(tmp_path / "pencil.onnx", 1)
        sticker = stickers.network_sticker(str(tmp_path / "mask.png"), model)
    if kind == "clear":
        sticker = stickers.Sticker(mask(False), sticker.anchors)
    (seen,) = at.page.evaluate("marks")
    face = {name: 1024 * complex(*place) for name, place in seen.items()}
    page = Image.fromarray(plain.astype(np.uint8)).convert("RGBA")
    stickers.lay(page, sticker, face, stickers.facing(face))
    wanted = np.asarray(page.convert("RGB")).astype(int)
    want, got = (np.abs(each - plain).max(2) > 40 for each in (wanted, found))
    assert want.mean() > 0.003
    assert (want & got).sum() / (want | got).sum() > 0.93
    assert np.abs(found - wanted)[want & got].mean() < 8
    at.page.click("#wear-own")
    at.wait("document.getElementById('worn').width === 1")
    at.settle()
    assert np.abs(saved(at) - plain).max() <= 1


def without_sketches(route):
    manifest = route.fetch().json()
    students = [each for each in manifest["students"] if each["kind"] == "photo"]
    route.fulfill(json=manifest | {"students": students})


def test_what_cannot_be_worn_is_said_in_a_line(visit):
    at = visit(routes={"**/manifest.json": without_sketches})
    png = encoded(mask(False))
    for files, said in (
        ([("notes.txt", b"no picture")], "notes.txt: no picture this browser can read"),
        ([("a.json", b"{}")], "a.json: no picture this browser can read"),
        ([("line.png", encoded(mask(True)))], "line.png cannot be worn: it has no transparency"),
        *(
            ([("a.png", png), ("a.json", json.dumps({"anchors": odd}).encode())], "want {")
            for odd in ({}, {"nose": [1, 2]}, {"nose": [1, 2], "hand": [3, 4]}, {"nose": 1})
        ),
    ):
        at.page.evaluate("document.getElementById('message').textContent = ''")
        own(at, *files)
        at.wait("document.getElementById('message').textContent !== ''")
        assert said in at.text("message")
        assert at.page.is_hidden("#wear-own")


def test_what_is_sketched_is_worn_under_the_camera(visit):
    at = visit("?compare=0&style=negative&sketch=pencil", camera=True)
    at.page.click("#view-sketch")
    at.page.click("#clear")
    assert at.page.is_disabled("#wear-sticker")
    box = at.page.locator("#paper").bounding_box()
    at.page.mouse.move(box["x"] + 60, box["y"] + 60)
    at.page.mouse.down()
    at.page.mouse.move(box["x"] + 160, box["y"] + 150, steps=4)
    at.wait("distill.last().then((l) => l?.width === 256 && l.channels === 4)")
    at.settle()
    for name in ("wear", "save"):  # a stroke that may go on
        assert at.page.is_disabled(f"#{name}-sticker")
    at.page.mouse.up()
    at.wait("!document.getElementById('wear-sticker').disabled")
    at.page.click("#wear-sticker")
    at.wait("document.getElementById('worn').width > 1")
    assert at.page.is_visible("#photo-view")
    at.wait_here(lambda: opaque(at) > 0.0005)
    assert opaque(at) < 0.2
    assert at.page.text_content("#wear-own") == "your sketch"
