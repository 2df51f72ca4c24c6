"""A picture zoomed, cropped, turned, taken back; its film and the wall of its styles."""

import io

import numpy as np
import pytest
from PIL import Image, ImageOps

from support.chromium_page import READY, download, show
from support.parts_page import saved

SIZE = (400, 300)
PLACE = """(() => {
  const style = document.getElementById('viewer').style;
  return ['--zoom', '--x', '--y'].map((name) => parseFloat(style.getPropertyValue(name)));
})()"""

PINCH = """([x, y]) => {
  const viewer = document.getElementById('viewer');
  const finger = { bubbles: true, pointerType: 'touch' };
  const fire = (name, pointerId, dx) => viewer.dispatchEvent(
    new PointerEvent(name, { ...finger, pointerId, clientX: x + dx, clientY: y }));
  for (const [name, by] of [['down', 40], ['move', 50], ['up', 50]])
    for (const [id, side] of [[7, -1], [8, 1]]) fire(`pointer${name}`, id, side * by);
}"""


def photo() -> Image.Image:
    """Smooth, each corner another colour."""
    x, y = np.meshgrid(np.linspace(0, 1, SIZE[0]), np.linspace(0, 1, SIZE[1]))
    return Image.fromarray(np.uint8(40 + 180 * np.stack([x, y, 1 - x * y], 2)))


def act(at, button: str) -> None:
    count = at.page.evaluate("distill.speed().frames")
    at.page.click(button)
    at.wait(f"distill.speed().frames > {count}")
    at.settle()


def off(found: np.ndarray, picture: Image.Image) -> int:
    """Levels by which it is not the negative of a picture."""
    wanted = 255 - np.asarray(picture).astype(int)
    assert found.shape == wanted.shape
    return int(np.abs(found - wanted).max())


def test_what_is_seen_is_cropped_turned_saved_kept_and_taken_back(visit):
    at = visit("?compare=0&strokes=fine")
    picture = photo()
    show(at, picture)
    at.page.focus("#viewer")
    for key in ("+", "+", "+", "ArrowLeft", "ArrowDown"):
        at.page.keyboard.press(key)
    scale = 1.25**3
    x, y = ((1 - scale) / 2 + by for by in (0.1, -0.1))
    assert at.page.evaluate(PLACE) == pytest.approx([scale, 100 * x, 100 * y])
    act(at, "#crop")
    assert at.page.evaluate(PLACE) == [1, 0, 0]
    left, top = round(-x / scale * 400), round(-y / scale * 300)
    crop = picture.crop((left, top, left + round(400 / scale), top + round(300 / scale)))
    assert off(saved(at), crop) <= 1
    act(at, "#mirror")
    act(at, "#turn")
    turned = ImageOps.mirror(crop).transpose(Image.Transpose.ROTATE_270)
    assert off(saved(at), turned) <= 1
    at.page.reload()
    at.wait(READY)
    at.settle()
    assert off(saved(at), turned) <= 1

    count = at.page.evaluate("distill.speed().frames")
    at.page.select_option("#shape", "1")
    at.wait(f"distill.speed().frames > {count}")
    wide, high = turned.size
    square = turned.crop((0, (high - wide) // 2, wide, (high - wide) // 2 + wide))
    found = saved(at)
    assert found.shape == (wide, wide, 3)
    assert off(found, square) <= 3  # half a pixel of the middle
    at.page.keyboard.press("Control+z")
    at.wait(f"document.getElementById('save-gives').textContent.includes('{wide} × {high}')")
    at.settle()
    assert off(saved(at), turned) <= 1
    assert at.page.is_disabled("#undo-edit")


def test_undo_goes_back_to_the_picture_before(visit):
    at = visit("?compare=0")
    show(at, Image.new("RGB", (90, 60)))
    show(at, Image.new("RGB", (50, 70)))
    assert "50 × 70" in at.text("save-gives")
    act(at, "#undo-edit")
    assert "90 × 60" in at.text("save-gives")
    act(at, "#undo-edit")
    assert "1280 × 595" in at.text("save-gives")


def test_wheel_and_fingers_keep_what_lies_below_them(visit):
    at = visit("?compare=1")
    show(at, Image.new("RGB", SIZE, (200, 40, 40)))
    box = at.page.locator("#viewer").bounding_box()

    def place(across: float, down: float) -> tuple[float, float]:
        return box["x"] + across * box["width"], box["y"] + down * box["height"]

    at.page.mouse.move(*place(0.75, 0.25))
    at.page.mouse.wheel(0, -400)
    at.wait("document.getElementById('viewer').classList.contains('zoomed')")
    scale, x, y = at.page.evaluate(PLACE)
    assert scale == pytest.approx(np.e, rel=1e-3)
    assert (x, y) == pytest.approx((75 - 75 * scale, 25 - 25 * scale), abs=0.2)
    at.page.mouse.down()
    at.page.mouse.move(*place(0.65, 0.3))
    at.page.mouse.up()
    assert at.page.evaluate(PLACE)[1:] == pytest.approx([x - 10, y + 5], abs=0.2)
    # The divider stands where it stood, and cuts what is enlarged there.
    picture = np.asarray(Image.open(io.BytesIO(at.page.screenshot())).convert("RGB")).astype(int)
    for across, colour in ((0.4, (200, 40, 40)), (0.6, (55, 215, 215))):
        column, row = map(int, place(across, 0.7))
        assert np.abs(picture[row, column] - colour).max() <= 3

    before, [across, down] = at.page.evaluate(PLACE), place(0.5, 0.5)
    at.page.evaluate(PINCH, [across, down])
    after = at.page.evaluate(PLACE)
    assert after[0] == pytest.approx(before[0] * 1.25, rel=1e-3)
    for side in (1, 2):  # the middle of the frame stays
        assert (50 - after[side]) / after[0] == pytest.approx(
            (50 - before[side]) / before[0], abs=0.3
        )


def test_a_wall_has_the_photo_and_every_style(visit):
    at = visit("?compare=0")
    colour = (200, 100, 40)
    show(at, Image.new("RGB", (480, 240), colour))
    wall = np.asarray(download(at.page, "#wall").convert("RGB")).astype(int)
    # Four pictures of 480 × 240, a name below each, in as nearly a square as there is.
    across, down = 480 + 16, 240 + 44
    columns = round((4 * down / across) ** 0.5)
    assert wall.shape == (-(-4 // columns) * down + 16, columns * across + 16, 3)
    middles = [
        wall[16 + 120 + down * (i // columns), 16 + 240 + across * (i % columns)] for i in range(4)
    ]
    negative = np.subtract(255, colour)
    assert np.abs(middles[0] - colour).max() <= 1
    assert np.abs(middles[1] - negative).max() <= 1  # negative, then hayao and stiff
    assert np.abs(middles[3] - negative).max() <= 1


@pytest.mark.parametrize(
    ("button", "size"),
    [
        ("wipe-square", (1080, 1080)),
        pytest.param("wipe-tall", (1080, 1920), marks=pytest.mark.campaign),
    ],
)
def test_a_film_goes_from_the_photo_to_the_drawing(visit, tmp_path, button, size):
    av = pytest.importorskip("av", reason="no PyAV: pip install 'distill[video]'")
    at = visit("?compare=1&beside=1")
    colour = np.array((200, 100, 40))
    show(at, Image.new("RGB", SIZE, tuple(map(int, colour))))
    at.wait(f"!document.getElementById('{button}').hidden")
    with at.page.expect_download(timeout=240_000) as found:
        at.page.click(f"#{button}")
    at.wait("document.getElementById('message').textContent === 'The film is saved: 120 frames.'")
    with av.open(str(found.value.path())) as film:
        stream = film.streams.video[0]
        assert (stream.width, stream.height) == size
        frames = list(film.decode(video=0))
    assert len(frames) == 120
    middle = size[1] // 2
    wanted = {0: (colour, colour), 75: (255 - colour, 255 - colour), 119: (255 - colour, colour)}
    for number, sides in wanted.items():
        frame = frames[number].to_ndarray(format="rgb24").astype(int)
        for across, expected in zip((270, 810), sides, strict=True):
            assert np.abs(frame[middle, across] - expected).max() <= 8
