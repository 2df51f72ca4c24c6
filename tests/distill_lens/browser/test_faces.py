"""Faces alone: what is drawn of a picture, what stays as the photo has it, and what is said."""

import numpy as np
import pytest
from PIL import Image
from skimage.data import astronaut, coffee

from distill.data.faces import BlazeFace
from distill.models import zoo
from distill.stylize import portraits, render
from distill.stylize.stylizing import open_student
from support.astronaut_parts import face_and_rest, outlined
from support.chromium_page import show
from support.parts_page import CUT, draw, negated, opacity, saved

# What MediaPipe itself finds in the astronaut, in shares of her picture.
NETWORK = "**/page/blazeface_short_range-*.onnx"
WORKER = "**/page/worker-*.js"
NO_FACE = "No face was found in this picture."


@pytest.mark.campaign
def test_her_face_is_drawn_and_all_else_is_the_photos_own(visit):
    at, photo = negated(visit, "faces", astronaut())
    assert at.text("message") == ""
    found = saved(at)
    face, other = face_and_rest()
    assert face.mean() > 0.015
    assert other.mean() > 0.9  # shoulders, flag, helmet, hair
    assert np.array_equal(found[other], photo[other])
    assert np.array_equal(photo, astronaut())
    blurred = Image.fromarray((255 - photo).astype(np.uint8)).resize((240, 240)).resize((512, 512))
    assert np.abs(found - np.asarray(blurred).astype(int))[face].mean() < 6
    assert np.abs(found - photo)[face].mean() > 60


@pytest.mark.campaign
def test_a_small_face_is_found_in_a_part_of_the_picture(visit):
    """A fifteenth of its width: the detector sees nothing of it in the whole."""
    large = np.full((800, 1100, 3), 150, np.uint8)
    large[300:700, 600:1000] = np.asarray(Image.fromarray(astronaut()).resize((400, 400)))
    at = visit("?compare=0&size=256&strokes=fine")
    show(at, Image.fromarray(large))
    draw(at, "faces")
    found = saved(at)  # at its own size
    assert found.shape == large.shape
    changed = np.abs(found - large.astype(int)).max(2) > 0
    face = np.zeros_like(changed)
    face[300:700, 600:1000] = outlined(0.5, (400, 400))
    assert np.abs(found - (255 - large.astype(int)))[face].max() <= 1
    near = np.zeros_like(changed)
    near[300:700, 600:1000] = outlined(1.5, (400, 400))
    assert not (changed & ~near).any()


@pytest.mark.campaign
def test_without_a_face_the_photo_stays_and_that_is_said(visit):
    at, photo = negated(visit, "faces", coffee())
    assert at.text("message") == NO_FACE
    at.page.click("#mirror")
    at.settle()
    assert at.text("message") == NO_FACE
    assert np.array_equal(saved(at), photo[:, ::-1])
    show(at, Image.fromarray(astronaut()))
    assert at.text("message") == ""
    show(at, Image.fromarray(coffee()))
    assert at.text("message") == NO_FACE
    draw(at, "background")
    assert at.text("message") == ""
    assert opacity(at).max() == 255


@pytest.mark.campaign
def test_the_network_comes_once_and_only_where_it_is_wanted(visit):
    asked: list[str] = []
    note = {NETWORK: lambda route: (asked.append(route.request.url), route.continue_())}
    at = visit(routes=note)
    for part in ("people", "background"):
        draw(at, part)
    assert asked == []
    for part in ("faces", "everything", "faces"):
        draw(at, part)
    assert len(asked) == 1


def test_faces_under_the_camera(visit):
    at = visit("?compare=0&size=256&draw=faces", camera=True)  # a slow machine's choice is 48
    at.wait("document.getElementById('meter').textContent.includes('FPS')")
    at.wait(CUT)
    at.frames(3)
    opaque = opacity(at)
    assert 0.05 < (opaque == 255).mean() < 0.3
    assert (opaque[:, :20] == 0).all()  # her collar, and what is behind her
    assert (opaque[-20:] == 0).all()
    assert at.text("message") == ""


def side_by_side() -> np.ndarray:
    """Two of her, the face of the left one at the edge."""
    return np.hstack([astronaut()[:, 150:], astronaut()])


def large() -> np.ndarray:
    return np.asarray(Image.fromarray(astronaut()).resize((1024, 1024)))


@pytest.mark.parametrize(
    ("photo", "blend"),
    [
        pytest.param(astronaut, "feathered", marks=pytest.mark.campaign),
        pytest.param(side_by_side, "feathered", marks=pytest.mark.campaign),
        (side_by_side, "poisson"),
        pytest.param(large, "poisson", marks=pytest.mark.campaign),
    ],
)
def test_a_face_by_itself_is_what_stylize_pastes(visit, photo, blend):
    """The page's own picture, and in it each face as face=paste draws and blends it."""
    at = visit(f"?compare=0&style=hayao&size=256&blend={blend}")
    picture = photo()
    show(at, Image.fromarray(picture))
    plain = saved(at)
    seen = at.page.evaluate("distill.speed().frames")
    at.page.check("#apart")
    at.wait(f"distill.speed().frames > {seen}")
    at.settle()
    found = saved(at)
    model = open_student(zoo.find("hayao"), 1)
    squares = portraits.squares(Image.fromarray(picture), BlazeFace(), "blazeface", everyone=True)
    assert len(squares) == (2 if photo is side_by_side else 1)
    base = Image.fromarray(plain.astype(np.uint8)).convert("RGBA")
    wanted = base.copy()
    for part in reversed(squares):
        square = portraits.crop(Image.fromarray(picture).convert("RGBA"), part)
        drawn = render.stylise(square, model, 256)
        if blend == "poisson":
            drawn = portraits.seamless(drawn, portraits.crop(base, part))
        wanted.paste(drawn.convert("RGBA"), (part.left, part.top), portraits.disc(part.side))
    wanted = np.asarray(wanted.convert("RGB")).astype(int)
    pasted = np.abs(wanted - plain).max(2) > 8
    assert pasted.mean() > 0.02
    assert np.abs(wanted - plain)[pasted].mean() > 10
    # Its detector looks twice, and moves the square by some pixels.
    assert np.abs(found - wanted)[pasted].mean() < 5
    assert np.abs(found - wanted)[~pasted].mean() < 1


# Which faces came with the worker's results: their number, null where there was no time.
FACES = """
window.faces = [];
Object.defineProperty(Worker.prototype, "onmessage", {
  set(take) {
    this.addEventListener("message", (event) => {
      const { reply } = event.data;
      if (reply?.times) faces.push(reply.faces ? reply.faces.length : reply.faces);
      take(event);
    });
  },
});
"""


# The worker's time goes by as many times as fast as it is told.
CLOCK = """{
  const now = performance.now.bind(performance);
  let [times, last, sum] = [TIMES, now(), 0];
  performance.now = () => {
    const at = now();
    sum += times * (at - last);
    last = at;
    return sum;
  };
  new BroadcastChannel("clock").onmessage = ({ data }) => (times = data);
}"""
TELL = "new BroadcastChannel('clock').postMessage(0.01)"


def test_faces_by_themselves_are_left_out_where_there_is_no_time(visit):
    """And come back by themselves once there is."""

    def clock(route):
        script = route.fetch()
        route.fulfill(response=script, body=CLOCK.replace("TIMES", "100") + script.text())

    at = visit("?apart=1&blend=feathered", camera=True, script=FACES, routes={WORKER: clock})
    at.wait("document.getElementById('meter').textContent.includes('FPS')")
    at.frames(16)
    at.wait("faces.at(-1) === null")
    assert at.text("message").startswith("This device is too slow to draw faces by themselves")
    at.page.wait_for_timeout(4000)  # it is tried, and not seen
    assert at.page.evaluate("faces.slice(faces.lastIndexOf(1) + 1).length") > 8
    at.page.evaluate(TELL)
    at.wait("faces.slice(-8).join() === '1,1,1,1,1,1,1,1'")
    assert at.text("message") == ""
    at.page.evaluate(TELL.replace("0.01", "100"))
    at.wait("faces.at(-1) === null")
    at.page.click("#freeze")
    at.wait("document.getElementById('freeze').hidden && faces.at(-1) === 1")
    assert at.text("message") == ""
    assert at.page.is_checked("#apart")


def test_a_picture_without_a_face_by_itself_says_so(visit):
    at = visit()
    show(at, Image.fromarray(coffee()))
    at.page.check("#apart")
    at.wait("document.getElementById('message').textContent.startsWith('No face was found')")
    assert at.page.evaluate("localStorage.getItem('distill-lens')") == '{"apart":true}'
    at.page.uncheck("#apart")
    assert at.text("message") == ""
