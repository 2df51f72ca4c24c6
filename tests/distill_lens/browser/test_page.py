"""The page of distill.lens in a real browser."""

import io
import re
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from PIL import Image
from skimage.data import astronaut

from support.chromium_page import (
    canvas,
    clip_frame,
    download,
    encoded,
    show,
)
from support.lens_page import running


def halves(size=(300, 150)) -> Image.Image:
    """Red on the left, blue on the right."""
    picture = Image.new("RGB", size, (255, 0, 0))
    picture.paste((0, 0, 255), (size[0] // 2, 0, *size))
    return picture


def test_without_a_camera_the_page_stylises_its_example(still):
    at = still
    assert at.page.evaluate("crossOriginIsolated")
    threads = at.page.evaluate("Math.max(1, Math.min(4, navigator.hardwareConcurrency - 1))")
    backend = at.page.evaluate("distill.speed().backend")
    assert (backend["name"], backend["threads"]) == ("WASM", threads)
    assert at.text("backend").startswith("WASM, ")
    assert "no graphics card for WebGPU" in at.text("why")
    photo, output = at.last()
    assert photo.shape == (1, 3, 32, 64)
    assert np.abs(output - (1 - photo)).max() < 1e-5
    shown = canvas(at.page, "stylised")
    assert shown.shape[1] > 800  # enlarged to the screen's pixels
    negative = Image.fromarray(255 - canvas(at.page, "photo")[..., :3])
    negative = np.asarray(negative.resize(shown.shape[1::-1], Image.Resampling.BOX), float)
    assert np.abs(shown[..., :3] - negative).mean() < 12
    assert at.text("meter").endswith(" ms")


def test_the_camera_flows_mirrored_and_stops(visit):
    at = visit(camera=True)
    at.wait("document.getElementById('meter').textContent.includes('FPS')")
    assert at.page.get_attribute("#mirror", "aria-pressed") == "true"
    at.frames(3)
    first, _ = at.last()
    # The clip pans there and back, so any one later frame may show what the first did.
    at.wait_here(lambda: np.abs(first - at.last()[0]).max() > 0.1)
    near = min(_distance(first, shift, mirrored=True) for shift in range(-30, 31, 3))
    assert near < 0.06
    assert near < 0.7 * min(_distance(first, s, mirrored=False) for s in range(-30, 31, 3))
    at.page.click("#camera")
    at.wait("document.getElementById('camera').textContent.trim() === 'Camera'")
    assert at.page.evaluate("document.getElementById('message').textContent") == ""


def _distance(photo: np.ndarray, shift: int, mirrored: bool) -> float:
    frame = clip_frame(shift).resize((64, 48), Image.Resampling.BOX)
    want = np.asarray(frame.transpose(0) if mirrored else frame, np.float32) / 255
    return float(np.abs(photo[0, :, 8:-8].transpose(1, 2, 0) - want).mean())


def test_pictures_keep_their_shape_and_stand_upright(visit):
    at = visit()
    at.page.select_option("#size", "128")
    show(at, halves())
    photo, _ = at.last()
    assert photo.shape[2:] == (64, 128)
    assert photo[0, 0, 32, 30] == photo[0, 2, 32, 98] == 1
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter, clockwise: red comes to the top
    show(at, halves(), "turned.jpg", exif=exif, quality=95)
    photo, _ = at.last()
    assert photo.shape[2:] == (128, 64)
    assert photo[0, 0, 30, 32] > 0.95 > 0.1 > photo[0, 2, 30, 32]


def stripes(size: tuple[int, int]) -> Image.Image:
    """Blue with a red beginning and a green end, each a fiftieth of the long side."""
    picture = Image.new("RGB", size, (0, 0, 255))
    width, height = size
    if width > height:
        picture.paste((255, 0, 0), (0, 0, width // 50, height))
        picture.paste((0, 255, 0), (width - width // 50, 0, width, height))
    else:
        picture.paste((255, 0, 0), (0, 0, width, height // 50))
        picture.paste((0, 255, 0), (0, height - height // 50, width, height))
    return picture


@pytest.mark.parametrize("size", [(2000, 100), (100, 2000), (900, 500)])
@pytest.mark.parametrize("style", ["negative", "stiff"])
@pytest.mark.campaign
def test_nothing_of_a_picture_is_cut(visit, size, style):
    at = visit()
    at.page.check(f"input[value={style}]", force=True)
    at.wait(f"document.getElementById('tag').textContent.toLowerCase() === '{style}'")
    if style == "negative":
        at.page.select_option("#size", "256")
    show(at, stripes(size))
    seen = canvas(at.page, "stylised")[..., :3].astype(int)
    seen = seen if size[0] > size[1] else seen.swapaxes(0, 1)
    middle = seen.shape[0] // 2
    assert seen[middle, 0, 0] < 130  # the negative of red
    assert seen[middle, -1, 1] < 130
    wide = at.page.evaluate("stylised.clientWidth / stylised.clientHeight")
    assert wide == pytest.approx(size[0] / size[1], rel=0.15)
    photo, _ = at.last()
    if style == "negative":
        assert photo.shape[2] * photo.shape[3] <= 256 * 256
        assert seen.shape[1] >= 236
    assert photo.min(axis=1).max() == 0  # mirrored into the rims: nowhere the white behind it


@pytest.mark.parametrize("way", ["drop", "paste"])
def test_pictures_come_by_drop_and_paste(visit, way):
    at = visit()
    kind = {"drop": "DragEvent", "paste": "ClipboardEvent"}[way]
    field = {"drop": "dataTransfer", "paste": "clipboardData"}[way]
    at.page.evaluate(
        "([bytes, way, kind, field]) => { const data = new DataTransfer();"
        " data.items.add(new File([new Uint8Array(bytes)], 'p.png', { type: 'image/png' }));"
        " const options = { [field]: data, bubbles: true, cancelable: true };"
        " document.body.dispatchEvent(new globalThis[kind](way, options)); }",
        [list(encoded(Image.new("RGB", (99, 99), (0, 255, 0)))), way, kind, field],
    )
    at.wait("distill.last().then((l) => l.input[64 * 64 + 2080] === 1 && l.input[2080] === 0)")


def test_the_old_picture_is_not_drawn_again_while_a_new_one_is_read(visit):
    script = (
        "createImageBitmap = ((make) => async (what, ...how) => {"
        " if (what instanceof File) await new Promise((done) => (window.go = done));"
        " return make(what, ...how); })(createImageBitmap);"
    )
    at = visit(script=script)
    at.settle()
    count = at.page.evaluate("distill.speed().frames")
    content = encoded(Image.new("RGB", (99, 99), (0, 255, 0)))
    at.page.set_input_files("#file", {"name": "a.png", "mimeType": "", "buffer": content})
    at.wait("window.go !== undefined")
    at.page.wait_for_timeout(300)
    assert at.page.evaluate("distill.speed().frames") == count
    at.page.evaluate("go()")
    at.wait(f"distill.speed().frames > {count}")
    assert (at.last()[0][0, 1] == 1).all()


def test_no_picture_is_said_and_the_old_one_stays(visit):
    at = visit()
    before, _ = at.last()
    for name, content in {"notes.txt": b"dear", "empty.png": b""}.items():
        at.page.set_input_files("#file", {"name": name, "mimeType": "", "buffer": content})
        at.wait(f"document.getElementById('message').textContent.startsWith('{name}: no picture')")
    assert np.array_equal(at.last()[0], before)


def test_the_divider_moves_by_mouse_and_keys(visit):
    at = visit()
    divider, box = at.page.locator("#divider"), at.page.locator("#viewer").bounding_box()
    place = lambda share: (box["x"] + share * box["width"], box["y"] + box["height"] / 3)  # noqa: E731
    now = lambda: float(divider.get_attribute("aria-valuenow"))  # noqa: E731
    at.page.mouse.move(*place(0.5))
    at.page.mouse.down()
    at.page.mouse.move(*place(0.25), steps=4)
    at.page.mouse.up()
    assert now() == 25
    assert divider.bounding_box()["x"] + 22 == pytest.approx(place(0.25)[0], abs=2)
    at.page.mouse.move(*place(0.9))
    assert now() == 25
    for key, value in {"ArrowRight": 27, "Shift+ArrowLeft": 17, "Home": 0, "End": 100}.items():
        divider.press(key)
        assert now() == value
    divider.press("PageDown")
    assert divider.get_attribute("aria-valuetext") == "90 % photo"


def test_saving_gives_the_stylised_picture_and_the_photo_where_that_is_wanted(visit):
    at = visit()
    show(at, Image.new("RGB", (200, 200), (200, 100, 40)))
    assert at.page.is_visible("#divider")
    picture = np.asarray(download(at.page, "#save").convert("RGB")).astype(int)
    assert picture.shape == (200, 200, 3)
    assert np.abs(picture - (55, 155, 215)).max() <= 2
    at.page.check("#beside")
    picture = np.asarray(download(at.page, "#save").convert("RGB")).astype(int)
    assert np.abs(picture[:, 5:95] - (200, 100, 40)).max() <= 2
    assert np.abs(picture[:, 105:195] - (55, 155, 215)).max() <= 2


def saved_jpeg(at) -> tuple[Image.Image, int]:
    """The JPEG file that is saved, and its bytes."""
    with at.page.expect_download() as found:
        at.page.click("#save")
    assert found.value.suggested_filename.endswith(".jpg")
    content = found.value.path().read_bytes()
    return Image.open(io.BytesIO(content)), len(content)


def test_a_picture_is_saved_as_jpeg_of_the_quality_that_is_set(visit):
    """JPEG, and no photo beside it, where nothing else was set; by keyboard alone."""
    at = visit("?format=")
    show(at, Image.fromarray(astronaut()[:400, :400]).resize((1500, 1500)))
    picture, large = saved_jpeg(at)
    assert picture.format == "JPEG"
    assert picture.size == (1500, 1500)
    at.page.focus("#quality")
    at.page.keyboard.press("Home")
    assert at.text("quality-value") == "30 %"
    _, small = saved_jpeg(at)
    assert small < 0.6 * large
    at.page.focus("#format")
    at.page.keyboard.press("ArrowDown")
    assert at.page.is_hidden("#quality-row")
    assert download(at.page, "#save").size == picture.size


REFUSE = "navigator.mediaDevices.getUserMedia = async () => {{ throw new DOMException('', '{}'); }}"
NO_CAMERA = {
    "": "The camera was refused.",
    REFUSE.format("NotFoundError"): "No camera was found.",
    REFUSE.format("NotReadableError"): "perhaps another program uses it",
    "Object.defineProperty(navigator, 'mediaDevices', { value: undefined })": "https=true",
}


@pytest.mark.parametrize("script", NO_CAMERA, ids=["refused", "none", "busy", "insecure"])
@pytest.mark.campaign
def test_why_there_is_no_camera(visit, script):
    at = visit(script=script)
    at.page.click("#camera")
    at.wait("document.getElementById('message').textContent !== ''")
    assert NO_CAMERA[script] in at.text("message")
    assert "Pictures work without it" in at.text("message")
    show(at, halves((100, 100)))
    assert at.page.evaluate("document.getElementById('message').textContent") == ""


def test_a_student_that_does_not_arrive_leaves_the_earlier_one_at_work(visit):
    at = visit(camera=True)
    at.wait("document.getElementById('meter').textContent.includes('FPS')")
    at.page.route("**/students/hayao-*.onnx", lambda route: route.fulfill(status=404))
    at.page.click("input[value=hayao]", force=True)  # which goes back as soon as it is missing
    at.wait("document.getElementById('message').textContent !== ''")
    want = (
        r"hayao cannot run at 256: students/hayao-\w+\.onnx did not arrive: the server answers 404"
    )
    assert re.fullmatch(rf"{want}\. The page tries again by itself\.", at.text("message"))
    at.frames(3)
    assert at.page.is_checked("input[value=negative]")
    assert at.text("tag").lower() == "negative"
    at.page.unroute("**/students/hayao-*.onnx")
    at.page.check("input[value=hayao]", force=True)
    at.wait("document.getElementById('tag').textContent.toLowerCase() === 'hayao'")
    assert at.page.evaluate("document.getElementById('message').textContent") == ""
    assert [line for line in at.noise if "404" not in line and "hayao-" not in line] == []
    at.noise.clear()


def test_a_message_is_seen_on_a_small_screen(visit):
    at = visit(viewport={"width": 844, "height": 390})
    at.page.click("#camera")
    at.wait("document.getElementById('message').textContent !== ''")
    box = at.page.locator("#message").bounding_box()
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= 391  # scrolling goes by whole pixels


def test_the_speed_is_not_read_aloud_all_the_time(still):
    for meter in ("meter", "sketch-meter"):
        assert still.page.get_attribute(f"#{meter}", "aria-live") == "off"


def test_where_it_runs_and_how_fast_is_behind_an_i(visit):
    at = visit(viewport={"width": 360, "height": 640})
    assert not at.page.is_visible("#backend")
    assert not at.page.is_visible("#meter")
    at.page.click("#about summary")
    assert at.page.is_visible("#meter")
    box = at.page.locator("#about .sheet").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 360
    assert "Not offline: this browser keeps no pages here" in at.text("offline")


# Of a row, the words beside a small box take the finger, too.
SMALL = """[...document.querySelectorAll(
  'button, select, summary, a, .style, .row:has([type=checkbox]) label, input[type=range]')]
  .filter((each) => each.checkVisibility() && each.getBoundingClientRect().height < 43.9)
  .map((each) => each.id || each.textContent.trim())"""


@pytest.mark.parametrize("camera", [pytest.param(False, marks=pytest.mark.campaign), True])
@pytest.mark.parametrize(("width", "height"), [(390, 844), (844, 390)])
def test_all_that_is_touched_is_as_high_as_a_finger(visit, width, height, camera):
    at = visit(camera=camera, viewport={"width": width, "height": height})
    if camera:
        at.wait("!document.getElementById('loop').hidden")
    assert at.page.evaluate(SMALL) == []
    box = at.page.locator("#save").bounding_box()  # its one big button
    assert min(box["width"], box["height"]) >= 72
    side = "height" if width > height else "width"
    middle = box["y" if width > height else "x"] + box[side] / 2
    assert abs(middle - min(width, height) / 2) < 2
    at.page.click("#more")
    assert at.page.evaluate(SMALL) == []


TWO_CAMERAS = """navigator.mediaDevices.enumerateDevices = async () =>
  ["one", "other"].map((deviceId) => ({ deviceId, kind: "videoinput" }));"""
BAR = """[...document.querySelectorAll('#photo-view .dock button')]
  .filter((button) => button.checkVisibility())
  .map((button) => [button.id, button.getBoundingClientRect()])
  .map(([id, { left, width }]) => [id, left + width / 2])"""


@pytest.mark.parametrize("script", ["", TWO_CAMERAS])
def test_a_phones_bar_has_two_buttons_on_either_side_of_save(visit, script):
    at = visit(camera=True, viewport={"width": 390, "height": 844}, script=script)
    at.wait("!document.getElementById('freeze').hidden")
    turns = "flip" if script else "freeze"
    for bar in (["record", "save", turns], ["open", "save", "compare"]):
        names, places = zip(*at.page.evaluate(BAR), strict=True)
        assert names == ("more", *bar, "camera")
        assert np.allclose(np.add(places, places[::-1]), 390, atol=2)
        assert set(at.page.evaluate("[...tools.children].map(({ id }) => id)")).isdisjoint(names)
        at.page.click("#camera")  # ends it
        at.wait("document.getElementById('freeze').hidden")


def test_many_styles_are_pushed_aside_on_a_phone(visit):
    many = """const read = JSON.parse;
    JSON.parse = (text) => {
      const found = read(text);
      const first = found?.students?.[0];
      if (first) for (let i = 1; i < 14; i++)
        found.students.push({ ...first, name: `style-${i}`, commercial: i > 9 ? "no" : "yes" });
      return found;
    };"""
    at = visit(viewport={"width": 390, "height": 844}, script=many)
    assert at.page.evaluate("document.documentElement.scrollWidth") <= 390
    strip, bar = (at.page.locator(each).bounding_box() for each in ("#styles", "#save"))
    assert strip["height"] < 112  # one row above the bar, whatever their number
    assert strip["y"] + strip["height"] <= bar["y"]
    assert at.page.inner_text(".style:has([value=style-13])").split("\n") == [
        "Style 13",
        "non-commercial",
    ]
    assert at.page.inner_text(".style:has([value=style-3])") == "Style 3"
    at.page.focus("input[value=negative]")
    at.page.keyboard.press("ArrowLeft")  # the last one
    # The picture's tag says the style as the strip does.
    at.wait("document.getElementById('tag').textContent === 'Style 13'")
    last = at.page.locator(".style:has([value=style-13])").bounding_box()
    assert last["x"] + last["width"] <= 391  # it has come into view


def test_everything_is_reached_by_keyboard(visit):
    at = visit()
    reached = []
    for _ in range(10):
        at.page.keyboard.press("Tab")
        reached.append(at.page.evaluate("document.activeElement.id || document.activeElement.name"))
    wanted = ["view-photo", "view-sketch", "viewer", "divider", "camera", "style", "strength"]
    assert [name for name in reached if name][: len(wanted)] == wanted
    at.page.focus("input[value=negative]")
    at.page.keyboard.press("ArrowRight")
    at.wait("document.getElementById('tag').textContent.toLowerCase() === 'hayao'")


def test_hosts_without_the_headers_get_one_thread_and_are_told_why(visit, folder):
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    with running(server) as address:
        at = visit(url=address)
        assert at.page.evaluate("distill.speed().backend.threads") == 1
        assert at.text("backend") == "WASM, 1 thread"
        assert "since this host sends no COOP/COEP headers" in at.text("why")


SCREENS = [(1440, 900), (2560, 1440), (1000, 700), (700, 900)]


@pytest.mark.parametrize(("width", "height"), SCREENS)
def test_the_picture_stays_in_view_while_it_is_adjusted(visit, width, height):
    """With every group unfolded and scrolled to its end; it uses the screen's width."""
    at = visit(viewport={"width": width, "height": height})
    last = at.page.locator("#forget")
    last.scroll_into_view_if_needed()
    assert last.is_visible()
    viewer = at.page.locator("#viewer").bounding_box()
    assert viewer["y"] >= 0
    dock = at.page.locator("#photo-view .dock").bounding_box()
    assert viewer["y"] + viewer["height"] <= dock["y"]
    assert dock["y"] + dock["height"] <= height
    assert at.page.evaluate("document.documentElement.scrollHeight") == height
    assert viewer["width"] > (0.65 if width > 900 else 0.9) * width  # two thirds of its landscape
    one_row = "new Set([...document.querySelectorAll('#photo-view .dock button')].flatMap("
    one_row += "(b) => b.offsetParent ? [b.getBoundingClientRect().top] : [])).size"
    assert at.page.evaluate(one_row) == 1


def test_on_a_tablet_the_styles_are_whole_and_stay_where_they_are(visit):
    """The settings below them scroll; a message comes below those."""
    at = visit(viewport={"width": 820, "height": 900})
    strip, first = at.page.locator("#styles"), at.page.locator("#styles .style").first
    box, style = strip.bounding_box(), first.bounding_box()
    assert style["height"] > 80
    assert style["y"] + style["height"] <= box["y"] + box["height"]
    assert style["x"] - box["x"] < 8
    at.page.click("#save")
    at.wait("document.getElementById('message').textContent !== ''")
    assert first.bounding_box() == style
    message = at.page.locator("#message").bounding_box()
    assert message["y"] > style["y"] + style["height"]
    assert message["y"] + message["height"] <= 900


def test_on_a_phone_the_sheet_leaves_the_picture_in_view(visit):
    at = visit(viewport={"width": 390, "height": 844}, reduced_motion="reduce")
    at.page.click("#more")
    viewer, sheet = (at.page.locator(each).bounding_box() for each in ("#viewer", "#sheet"))
    assert viewer["y"] > 0
    assert viewer["y"] + viewer["height"] <= sheet["y"]


def test_who_holds_the_picture_sees_the_photo(visit):
    at = visit("?compare=0")
    show(at, halves())
    at.page.hover("#viewer")
    seen = "getComputedStyle(document.getElementById('stylised')).visibility"
    at.page.mouse.down()
    assert at.page.evaluate(seen) == "hidden"
    at.page.mouse.up()
    assert at.page.evaluate(seen) == "visible"


def test_thumbnails_show_the_users_own_picture(visit):
    """Drawn by each style in turn, of the picture that is shown now."""
    at = visit(thumbnails=True)
    mean = """async (value) => {
      const image = document.querySelector(`.style:has([value=${value}]) img`);
      if (!image?.src.startsWith("blob:")) return null;
      await image.decode();
      const canvas = new OffscreenCanvas(1, 1), context = canvas.getContext("2d");
      context.drawImage(image, 0, 0, 1, 1);
      return [...context.getImageData(0, 0, 1, 1).data.slice(0, 3)];
    }"""
    for colour in ((200, 100, 40), (30, 60, 220)):
        show(at, Image.new("RGB", (300, 200), colour))
        for name in ("negative", "stiff"):
            want = 255 - np.array(colour)
            at.wait_here(
                lambda name=name, want=want: (
                    (found := at.page.evaluate(mean, name)) and np.abs(found - want).max() < 8
                )
            )
