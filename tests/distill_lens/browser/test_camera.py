"""When the page's camera is on, and what happens when it fails: the light on the device tells."""

import numpy as np
import pytest
from PIL import Image

from support.chromium_page import canvas, download, show

# Every track the page was given; with `window.late` they wait for `window.allow()`.
TRACKS = """
window.tracks = [];
const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
const asked = new Promise((done) => (window.allow = done));
navigator.mediaDevices.getUserMedia = async (wanted) => {
  if (window.late) await asked;
  const stream = await open(wanted);
  tracks.push(...stream.getTracks());
  return stream;
};
"""
LATE = TRACKS + "window.late = true;"
NO_PLAY = (
    TRACKS
    + """
HTMLMediaElement.prototype.play = async () => { throw new DOMException("", "AbortError"); };
"""
)
# A camera that stands still once `window.frozen` is set: every stream of it is of one canvas.
FREEZING = """
window.tracks = [];
navigator.mediaDevices.getUserMedia = async () => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 64, height: 64 });
  const context = canvas.getContext("2d");
  setInterval(() => {
    if (window.frozen) return;
    context.fillStyle = `rgb(${performance.now() % 256}, 0, 0)`;
    context.fillRect(0, 0, 64, 64);
  }, 40);
  const stream = canvas.captureStream();
  tracks.push(...stream.getTracks());
  return stream;
};
"""
OFF = "tracks.length > 0 && tracks.every((each) => each.readyState === 'ended')"
ON = "tracks.length > 0 && tracks.at(-1).readyState === 'live'"
IDLE = "document.getElementById('camera').textContent.trim() === 'Camera'"
SAID = "document.getElementById('message').textContent !== ''"
BLUE = (0, 0, 255)
# What the network saw at last is blue all over.
SHOWS_BLUE = """distill.last().then(({ input, width, height }) => {
  const middle = (width * height + width) / 2;
  return input[middle] === 0 && input[2 * width * height + middle] === 1;
})"""


def hide(at, hidden: bool) -> None:
    at.page.evaluate(
        "(hidden) => { Object.defineProperty(document, 'hidden', { value: hidden,"
        " configurable: true }); document.dispatchEvent(new Event('visibilitychange')); }",
        hidden,
    )


def flowing(visit, script=TRACKS):
    at = visit(camera=True, script=script)
    at.wait("document.getElementById('meter').textContent.includes('FPS')")
    at.wait(ON)
    return at


def test_it_is_off_in_a_hidden_tab_and_comes_back(visit):
    at = flowing(visit)
    hide(at, True)
    at.wait(OFF)
    hide(at, False)
    at.wait(ON)
    at.frames(3)
    assert at.page.evaluate("tracks.filter((each) => each.readyState === 'live').length") == 1


def test_it_is_off_where_its_picture_cannot_be_played(visit):
    at = visit(script=NO_PLAY, camera=True)
    at.wait(OFF)
    at.wait(SAID)
    assert "The camera did not start" in at.text("message")
    at.wait(IDLE)


@pytest.mark.parametrize("left", ["for the sketch", "for another tab", "by the button"])
@pytest.mark.campaign
def test_a_permission_after_leaving_turns_nothing_on(visit, left):
    at = visit(script=LATE, camera=True)
    at.wait("document.getElementById('camera').textContent.trim() === 'Stop'")
    if left == "for the sketch":
        at.page.click("#view-sketch")
    elif left == "for another tab":
        hide(at, True)
    else:
        at.page.click("#camera")
    at.page.evaluate("allow()")
    at.wait(OFF)
    assert at.page.evaluate("document.getElementById('message').textContent") == ""


def test_a_late_permission_does_not_replace_a_picture(visit):
    at = visit(script=LATE, camera=True)
    at.wait("document.getElementById('camera').textContent.trim() === 'Stop'")
    show(at, Image.new("RGB", (90, 90), BLUE))
    at.page.evaluate("allow()")
    at.wait(OFF)
    at.settle()
    assert at.page.evaluate(SHOWS_BLUE)
    assert at.page.evaluate(IDLE)


def test_stop_shows_what_was_there_before(visit):
    at = visit(script=TRACKS)
    at.page.context.grant_permissions(["camera"])
    show(at, Image.new("RGB", (90, 90), BLUE))
    at.page.click("#mirror")
    at.page.click("#camera")
    at.wait(ON)
    at.wait(f"{SHOWS_BLUE}.then((blue) => !blue)")
    at.page.click("#camera")
    at.wait(OFF)
    at.wait(SHOWS_BLUE)
    assert at.page.get_attribute("#mirror", "aria-pressed") == "true"


def test_a_lost_camera_leaves_the_view_and_shows_what_was_there_before(visit):
    at = visit(script=TRACKS)
    at.page.context.grant_permissions(["camera"])
    show(at, Image.new("RGB", (90, 90), BLUE))
    at.page.click("#camera")
    at.wait(ON)
    at.wait(f"{SHOWS_BLUE}.then((blue) => !blue)")
    at.page.evaluate("tracks[0].stop(), tracks[0].dispatchEvent(new Event('ended'))")
    at.wait(SHOWS_BLUE)
    at.wait(SAID)
    assert "The camera was disconnected" in at.text("message")


@pytest.mark.campaign
def test_a_frozen_camera_is_said_and_tried_again(visit):
    at = flowing(visit, FREEZING)
    at.page.evaluate("window.frozen = true")
    at.wait(SAID)
    assert "tries again by itself" in at.text("message")
    at.wait("tracks.length > 1")
    assert at.page.evaluate("tracks[0].readyState") == "ended"
    at.page.evaluate("window.frozen = false")
    at.wait("document.getElementById('message').textContent === ''")
    at.frames(2)
    assert not at.page.evaluate(IDLE)


def test_a_muted_camera_is_said_until_frames_come(visit):
    at = flowing(visit, FREEZING)
    # In one go: the next frame takes the line back.
    said = at.page.evaluate(
        "tracks[0].dispatchEvent(new Event('mute')), document.getElementById('message').textContent"
    )
    assert "gives no pictures at the moment" in said
    at.wait("document.getElementById('message').textContent === ''")
    assert at.page.evaluate("tracks.length") == 1


def test_it_stops_where_the_server_has_gone(visit):
    at = flowing(visit)
    at.page.context.set_offline(True)
    at.page.click("#camera")
    at.wait(OFF)
    at.wait(IDLE)


def test_a_frozen_frame_is_a_picture_that_is_saved_at_the_cameras_size(visit):
    at = flowing(visit)
    at.page.focus("#camera")
    at.page.keyboard.press("ArrowRight")
    assert at.page.evaluate("document.activeElement.id") == "freeze"
    at.page.keyboard.press("Enter")
    at.wait(OFF)
    at.wait(IDLE)
    at.settle()
    assert at.page.is_hidden("#freeze")
    assert at.page.get_attribute("#mirror", "aria-pressed") == "true"  # as the camera was
    at.page.select_option("#stroke-size", "fine")
    at.settle()
    saved = np.asarray(download(at.page, "#save").convert("RGB")).astype(float)
    assert saved.shape == (480, 640, 3)
    photo = canvas(at.page, "photo")[..., :3]
    assert np.abs(saved - (255 - photo)).max() <= 2
    assert at.text("message") == "The picture is saved at 640 × 480."
    at.page.click("#camera")
    at.wait(ON)
    at.wait("!document.getElementById('freeze').hidden")
