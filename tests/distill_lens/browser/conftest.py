"""A real Chromium on the real page, its camera fed from a clip of a face."""

import base64
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distill.config.compose import load
from distill_lens import lens_folder, webpage
from distill_lens.server import bind
from distill_lens.settings import Lens
from support.chromium_page import FLAGS, PATIENCE, READY, chromium, write_clip
from support.lens_page import running
from support.onnx_networks import negative

HERE = Path(__file__).parent
# JSON would take seconds for so many numbers.
LAST = """async () => {
  const pack = ({ buffer }) => new Promise((done) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result.split(",")[1]);
    reader.readAsDataURL(new Blob([buffer]));
  });
  const { width, height, input, output } = await distill.last();
  return [[height, width], await pack(input), await pack(output.slice())];
}"""

UNFOLDED = """addEventListener("DOMContentLoaded", () =>
  document.querySelectorAll(".group").forEach((group) => (group.open = true)));"""


@pytest.hookimpl(tryfirst=True)  # before -m deselects
def pytest_collection_modifyitems(items):
    """What opens a browser is slow."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def clip(tmp_path_factory):
    """The astronaut's face, panned, as an uncompressed video (Y4M)."""
    path = tmp_path_factory.mktemp("clip") / "face.y4m"
    write_clip(path)
    return path


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A lens with a network whose answers are known, a real student, and three for sketches."""
    if shutil.which("npm") is None and not (webpage.PAGE / "index.html").is_file():
        pytest.skip("no page: it is not built, and npm is not here")
    place = tmp_path_factory.mktemp("lens")
    names = {"negative": negative(), "stiff": negative(reshaped=True)}
    names |= {"pencil": negative(channels=4, side=256), "paint": negative(side=256)}
    names["chalk"] = negative(side=128)
    for name, network in names.items():
        network.save(str(place / f"{name}.onnx"))
    files = {name: str(place / f"{name}.onnx") for name in names}
    photo = f"students=[{files['negative']},hayao,{files['stiff']}]"
    sketch = f"sketches=[{files['pencil']},{files['paint']},{files['chalk']}]"
    settings = load("lens", [photo, sketch, f"output={place / 'built'}"], Lens)
    return lens_folder.build(webpage.find(), lens_folder.choose_students(settings), settings)


@pytest.fixture(scope="session")
def address(folder):
    with running(bind(folder, load("lens", ["port=0"], Lens))) as found:
        yield found


@pytest.fixture(scope="session")
def playwright():
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="no Playwright: pip install 'distill[browser]'"
    )
    with sync_api.sync_playwright() as found:
        yield found


@pytest.fixture(scope="session")
def browser(playwright, clip):
    flags = [*FLAGS, f"--use-file-for-fake-video-capture={clip}"]
    found = playwright.chromium.launch(executable_path=chromium(), args=flags)
    yield found
    found.close()


@dataclass
class Visit:
    """The page in a tab of its own."""

    page: Any
    noise: list[str]

    def wait(self, condition: str, why: str = "", patience: float = PATIENCE) -> None:
        """Until a JavaScript expression is true; the page's policy forbids Playwright's own."""
        end = time.monotonic() + patience
        while not self.page.evaluate(condition):
            said = self.page.inner_text("#message")
            assert time.monotonic() < end, f"{why or condition}; the page says: {said!r}"
            time.sleep(0.05)

    def wait_here(self, condition: Callable[[], Any]) -> None:
        """Until something is true in the test, while the page goes on."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end
            self.page.wait_for_timeout(50)

    def frames(self, more: int = 1) -> None:
        """Until that many more frames were stylised."""
        count = self.page.evaluate("distill.speed().frames")
        self.wait(f"distill.speed().frames >= {count + more}")

    def last(self) -> tuple[np.ndarray, np.ndarray]:
        """The network's last input and output, (1, C, H, W)."""
        size, *planes = self.page.evaluate(LAST)
        values = (np.frombuffer(base64.b64decode(p), np.float32) for p in planes)
        photo, output = (p.reshape(1, -1, *size) for p in values)
        return photo, output

    def settle(self, patience: float = PATIENCE) -> None:
        """Until a still picture or a sketch has its last result."""
        self.wait("!distill.busy()", patience=patience)

    def text(self, name: str) -> str:
        """What is seen of an element, or, where it is folded away, would be."""
        return str(self.page.inner_text(f"#{name}") or self.page.text_content(f"#{name}"))


@pytest.fixture
def visit(browser, address):
    """Opens the page; at the end nothing may have gone wrong in it, or left its host."""
    with _visits(browser, address) as open_page:
        yield open_page


@pytest.fixture(scope="session")
def still(browser, address):
    """The page as it opens, for tests that look at it and change nothing."""
    with _visits(browser, address) as open_page:
        yield open_page()


@contextmanager
def _visits(browser: Any, address: str) -> Iterator[Callable[..., Visit]]:
    contexts, visits = [], []

    def open_page(query: str = "", camera: bool = False, script: str = "", **options: Any) -> Visit:
        ready, routes = options.pop("ready", True), options.pop("routes", {})
        url = options.pop("url", address)
        offline, thumbnails = options.pop("offline", False), options.pop("thumbnails", False)
        if "size=" not in query:  # else the machine's speed would choose
            query += ("&" if query else "?") + f"size={options.pop('size', 64)}"
        if "format=" not in query:  # as no test can tell a JPEG's pixels
            query += "&format=png"
        options = {"permissions": ["camera"] * camera} | options
        context = options.pop("browser", browser).new_context(**options)
        contexts.append(context)
        page, noise = context.new_page(), []
        page.on("console", lambda m: noise.append(f"{m.type}: {m.text}"))
        page.on("pageerror", lambda error: noise.append(str(error)))
        page.on("requestfailed", lambda request: noise.append(f"failed: {request.url}"))
        page.on("request", lambda r: r.url.startswith((url, "blob:")) or noise.append(r.url))
        for pattern, handler in routes.items():
            page.route(pattern, handler)
        if not offline:  # a service worker would answer before the routes here
            page.add_init_script("delete Navigator.prototype.serviceWorker")
        # Styles are fetched where they are chosen, and not for their thumbnails.
        save_data = "Object.defineProperty(NetworkInformation.prototype, 'saveData', {value: true})"
        page.add_init_script("" if thumbnails else save_data)
        page.add_init_script(UNFOLDED)
        if script:
            page.add_init_script(script)
        page.goto(url + query)
        visits.append(Visit(page, noise))
        if ready:
            visits[-1].wait(READY)
        return visits[-1]

    yield open_page
    for each in visits:
        assert each.noise == []
    for context in contexts:
        context.close()
