"""What leaves the page: pictures copied and shared, films."""

import base64
import io
import json
import re

import numpy as np
import pytest
from PIL import Image

from support.chromium_page import download

READ_CLIPBOARD = """async () => {
  const [item] = await navigator.clipboard.read();
  const bytes = new Uint8Array(await (await item.getType("image/png")).arrayBuffer());
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}"""
SHARING = """
navigator.canShare = ({ files }) => files.every(({ type }) => type === "image/png");
navigator.share = async ({ files: [file] }) => {
  window.shared = [file.name, file.type, file.size];
  if (window.mind === "changed") throw new DOMException("", "AbortError");
  if (window.mind === "broken") throw new Error("the app is gone");
};
"""
MICROPHONE = ["camera", "microphone"]


def pixels(picture):
    return np.asarray(picture.convert("RGB")).astype(int)


def clipboard(at):
    content = base64.b64decode(at.page.evaluate(READ_CLIPBOARD))
    return pixels(Image.open(io.BytesIO(content)))


@pytest.mark.parametrize("how", ["button", "keys"])
def test_a_copied_picture_is_nearly_the_saved_one(visit, how):
    """As it is shown: what fills it up to the network's sides lies around it, and not below."""
    at = visit(permissions=["clipboard-read", "clipboard-write"], size="")
    at.settle()
    at.page.click("#copy") if how == "button" else at.page.keyboard.press("Control+c")
    at.wait("document.getElementById('message').textContent === 'The picture is in the clipboard.'")
    copied, saved = clipboard(at), pixels(download(at.page, "#save"))
    assert copied.shape == saved.shape
    assert np.abs(copied - saved).mean() < 4


def test_marked_text_is_copied_as_text(visit):
    at = visit(permissions=["clipboard-read", "clipboard-write"])
    at.settle()
    at.page.evaluate("getSelection().selectAllChildren(document.querySelector('legend'))")
    at.page.keyboard.press("Control+c")
    assert at.page.evaluate("navigator.clipboard.readText()") == "Style"


def test_phones_share_and_need_no_clipboard(visit):
    at = visit(script=SHARING)
    assert not at.page.is_visible("#copy")
    at.page.click("#share")
    at.wait("window.shared !== undefined")
    name, kind, size = at.page.evaluate("window.shared")
    assert name == "example-negative.png"
    assert (kind, size > 100) == ("image/png", True)
    for mind, said in {"changed": "", "broken": "the app is gone"}.items():
        at.page.evaluate(f"window.mind = {json.dumps(mind)}")
        at.page.click("#share")
        at.wait(f"document.getElementById('message').textContent === {json.dumps(said)}")


def film(at, frames=12):
    """Record so many frames; gives the film's frames and how many sound tracks it has."""
    av = pytest.importorskip("av", reason="no PyAV: pip install 'distill[video]'")
    at.wait("!document.getElementById('record').hidden")
    at.page.click("#record")
    at.wait("document.getElementById('record').getAttribute('aria-pressed') === 'true'")
    at.frames(frames)
    with at.page.expect_download() as found:
        at.page.click("#record")
    name = found.value.suggested_filename
    with av.open(str(found.value.path())) as video:
        pictures = [frame.to_ndarray(format="rgb24") for frame in video.decode(video=0)]
    with av.open(str(found.value.path())) as video:
        return name, pictures, len(video.streams.audio)


def test_a_film_shows_what_the_page_showed(visit):
    at = visit("?compare=0", permissions=MICROPHONE)
    name, pictures, sounds = film(at)
    assert re.fullmatch(r"camera-\d{8}-\d{6}-negative\.(mp4|webm)", name)
    assert sounds == 1
    assert len(pictures) >= 6
    height, width = pictures[0].shape[:2]
    assert {"width": width, "height": height} == at.page.evaluate(
        "(({ width, height }) => ({ width, height }))(document.getElementById('photo'))"
    )
    moved = [np.abs(a.astype(int) - b).mean() for a, b in zip(pictures, pictures[1:], strict=False)]
    assert max(moved) > 1
    # The clip's faces are light on a dark ground at the left edge; their negatives are not.
    photo, output = at.last()
    assert abs(pictures[-1].mean() / 255 - output.mean()) < 0.1
    assert abs(photo.mean() - output.mean()) > 0.1


def test_a_film_without_a_microphone_is_silent_and_says_so(visit):
    at = visit(camera=True)
    assert film(at)[2] == 0
    assert at.text("message").startswith("The film has no sound")


def test_no_microphone_is_asked_for_where_no_sound_is_wanted(visit):
    ask = """
    const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    window.asked = [];
    navigator.mediaDevices.getUserMedia = (what) => {
      window.asked.push(...Object.keys(what));
      return ask(what);
    };
    """
    at = visit("?sound=0", permissions=MICROPHONE, script=ask)
    assert not at.page.is_checked("#sound")
    assert film(at)[2] == 0
    assert at.page.evaluate("window.asked") == ["video"]
    assert at.text("message") == ""


def test_a_film_ends_with_its_camera_and_is_not_lost(visit):
    at = visit(permissions=MICROPHONE)
    at.wait("!document.getElementById('record').hidden")
    at.page.click("#record")
    at.wait("document.getElementById('record').getAttribute('aria-pressed') === 'true'")
    at.frames(5)
    with at.page.expect_download() as found:
        at.page.click("#camera")
    assert found.value.path().stat().st_size > 1000
    assert at.page.is_hidden("#record")
    assert at.page.is_hidden("#sound-row")


def test_pictures_are_not_filmed(still):
    assert still.page.is_hidden("#record")
