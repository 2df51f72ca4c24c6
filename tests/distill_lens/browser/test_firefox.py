"""The page's main flows in Firefox: load, stylise, choose, save, camera, without a network."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from distill.config.compose import load
from distill_lens.server import bind
from distill_lens.settings import Lens
from support.chromium_page import READY, canvas, encoded
from support.firefox_page import FirefoxPage, firefox, opened
from support.lens_page import running

LAST = """distill.last().then(({ width, height, input, output }) => ({
  size: [height, width], input: [...input], output: [...output] }))"""


@pytest.fixture(scope="module")
def at(tmp_path_factory):
    firefox()
    with opened(tmp_path_factory.mktemp("firefox")) as page:
        yield page


def last(at: FirefoxPage) -> tuple[np.ndarray, np.ndarray]:
    found = at.evaluate(LAST)
    photo, output = (
        np.array(found[key], np.float32).reshape(1, 3, *found["size"])
        for key in ("input", "output")
    )
    return photo, output


def show(at: FirefoxPage, picture: Image.Image, path: Path) -> None:
    path.write_bytes(encoded(picture))
    at.wait("!distill.busy()")
    count = at.evaluate("distill.speed().frames")
    at.set_file("file", path)
    at.wait(f"distill.speed().frames > {count} && !distill.busy()")


# What the made camera gives where it is asked as the page asks.
CAMERA = """navigator.mediaDevices.getUserMedia({ video: { width: { ideal: 1280 },
  height: { ideal: 720 } } }).then((stream) => {
  const [track] = stream.getTracks();
  const { width, height } = track.getSettings();
  track.stop();
  return [width, height]; })"""


def ready(at: FirefoxPage, address: str, query: str) -> None:
    at.open(f"{address}?size=64&format=png&{query}")
    at.wait(READY)


def test_a_picture_is_stylised_and_saved_at_its_size(at, address, tmp_path):
    ready(at, address, "compare=0")
    show(at, Image.new("RGB", (700, 500), (200, 100, 40)), tmp_path / "shade.png")
    at.click("save")
    with Image.open(at.downloaded()) as saved:
        assert (saved.format, saved.size) == ("PNG", (700, 500))
        values = np.asarray(saved.convert("RGB")).astype(int)
    assert np.abs(values - (55, 155, 215)).max() <= 2
    said = at.evaluate("document.getElementById('message').textContent")
    assert said == "The picture is saved at 700 × 500."


@pytest.mark.campaign
def test_a_camera_is_drawn_as_it_changes_and_saved_at_its_size(at, address):
    ready(at, address, "compare=0")
    size = tuple(at.evaluate(CAMERA))
    at.click("camera")
    at.wait("document.getElementById('meter').textContent.includes('FPS')")
    pictures = []
    for _ in range(3):
        count = at.evaluate("distill.speed().frames")
        at.wait(f"distill.speed().frames >= {count + 10}")
        pictures.append(canvas(at, "stylised")[..., :3].astype(float))
    assert all(picture.std() > 5 for picture in pictures)
    changes = [np.abs(now - before) for before, now in zip(pictures, pictures[1:], strict=False)]
    assert all(change.mean() > 0.1 for change in changes)
    photo, output = last(at)
    assert photo.std() > 0.02
    assert np.abs(output - (1 - photo)).max() < 1e-5

    at.click("freeze")
    at.wait("document.getElementById('freeze').hidden && !distill.busy()")
    at.click("save")
    with Image.open(at.downloaded()) as saved:
        assert (saved.format, saved.size) == ("PNG", size)
        assert np.asarray(saved.convert("RGB")).std() > 5
    said = at.evaluate("document.getElementById('message').textContent")
    assert said == f"The picture is saved at {size[0]} × {size[1]}."


@pytest.mark.campaign
def test_without_a_network_it_opens_again(at, folder):
    with running(bind(folder, load("lens", ["port=0"], Lens))) as address:
        ready(at, address, "compare=0")
        kept = "caches.keys().then((names) => Promise.all(names.map(async (name) => (await (await"
        kept += " caches.open(name)).keys()).map(({ url }) => url)))).then((all) => all.flat())"
        at.wait(
            f"navigator.serviceWorker?.controller && {kept}.then((all) =>"
            " ['.wasm', '.onnx', '.js'].every((end) => all.some((url) => url.includes(end))))"
        )
    ready(at, address, "compare=0")
    photo, output = last(at)
    assert np.abs(output - (1 - photo)).max() < 1e-5
