"""What faces wear on the page: stickers of distill.stylize, on pictures, in films and files."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from skimage.data import astronaut, coffee

from distill.data.faces import BlazeFace
from distill.stylize import stickers
from support.chromium_page import canvas, download, show

SAID = "document.getElementById('message').textContent"


def wear(at, *names):
    """Tick stickers, and wait until they are worn."""
    at.settle()
    for name in names:
        seen = at.page.evaluate("distill.speed().frames")
        at.page.click(f"#wear label:has([value={name}])")
        at.wait(f"distill.speed().frames > {seen}")
        at.settle()


def saved(at):
    return np.asarray(download(at.page, "#save").convert("RGB")).astype(int)


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


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("size", [512, 1024])
@pytest.mark.slow
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
        stickers.put(page, stickers.read_sticker(name), face, stickers.facing(face))
    wanted = np.asarray(page.convert("RGB")).astype(int)
    want, got = (np.abs(each - plain).max(2) > 40 for each in (wanted, found))
    assert 0.05 < want.mean() < 0.5
    assert (want & got).sum() / (want | got).sum() > 0.93
    assert at.text("message") in ("", "The picture is saved at 1024 × 1024.")
    assert at.page.evaluate("localStorage.getItem('distill-lens')") == '{"wear":"hair,glasses"}'
    wear(at, "hair", "glasses")  # off again
    assert np.abs(saved(at) - plain).max() <= 1


@pytest.mark.slow
def test_a_picture_without_a_face_wears_nothing_and_says_so(visit):
    at = visit("?compare=0&wear=beard")
    show(at, Image.fromarray(coffee()))
    at.wait(f"{SAID}.startsWith('No face was found')")
    assert canvas(at.page, "worn").shape[:2] == (1, 1)
    assert at.page.is_checked("#wear [value=beard]")
    show(at, Image.fromarray(astronaut()))
    assert at.text("message") == ""
    assert canvas(at.page, "worn")[..., 3].max() == 255


@pytest.mark.slow
def test_the_camera_wears_it_and_films_have_it(visit):
    av = pytest.importorskip("av", reason="no PyAV: pip install 'distill[video]'")
    at = visit("?compare=0&size=256&wear=glasses&sound=0", camera=True)
    at.wait("document.getElementById('meter').textContent.includes('FPS')")
    at.wait("document.getElementById('worn').width > 1")
    at.frames(8)  # its opacity has come
    opaque = canvas(at.page, "worn")[..., 3]
    assert 0.005 < (opaque > 200).mean() < 0.3
    at.page.click("#record")
    at.wait("document.getElementById('record').getAttribute('aria-pressed') === 'true'")
    at.frames(10)
    with at.page.expect_download() as film:
        at.page.click("#record")
    with av.open(str(film.value.path())) as video:
        frame = list(video.decode(video=0))[-1].to_ndarray(format="rgb24")
    dark = (frame < 60).all(2)  # their rim is dark, her face in negative is not
    rows = slice(frame.shape[0] // 5, 4 * frame.shape[0] // 5)
    assert dark[rows].mean() > 0.003
