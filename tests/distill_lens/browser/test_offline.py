"""The page without a network, on hosts that send no headers, and as a new version."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from PIL import Image
from skimage.data import astronaut

from distill_lens import __main__ as lens
from support.chromium_page import show
from support.commands import run
from support.lens_page import running
from support.onnx_networks import negative

playwright = pytest.importorskip("playwright.sync_api", reason="needs the extra browser")

READY = "window.distill !== undefined && distill.speed().frames > 0 && !distill.busy()"
KEPT = """async () => {
  const cache = await caches.open("distill-lens");
  return (await cache.keys()).map(({ url }) => new URL(url).pathname.slice(1));
}"""


class Plain(SimpleHTTPRequestHandler):
    """A host that sends files and no headers."""

    def log_message(self, *_args: object) -> None:
        pass


@contextmanager
def served(folder: Path, port: int = 0) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", port), partial(Plain, directory=str(folder)))
    with running(server):
        yield server.server_port


def isolated(at):
    try:
        return at.page.evaluate("window.crossOriginIsolated")
    except playwright.Error:  # asked while the page loads itself again
        return False


@pytest.fixture
def come(visit):
    """The page with its service worker, at a port."""

    def come_to(port):
        at = visit(url=f"http://127.0.0.1:{port}/", offline=True, ready=False)
        at.wait_here(partial(isolated, at))
        at.wait(READY)
        return at

    return come_to


def all_kept(at, folder):
    """Until everything that the page needs is kept."""
    names = [p.relative_to(folder).as_posix() for p in folder.glob("students/*")]
    at.wait_here(lambda: set(names) <= set(at.page.evaluate(KEPT)))
    at.wait_here(lambda: any(".wasm" in name for name in at.page.evaluate(KEPT)))


def test_a_static_build_works_on_a_plain_host_and_without_one(come, tmp_path):
    negative().save(str(tmp_path / "negative.onnx"))
    site = tmp_path / "site"
    assert run(lens, f"static={site}", f"students=[{tmp_path / 'negative.onnx'}]") == 0
    with served(site) as port:
        at = come(port)
        all_kept(at, site)
        at.wait("document.getElementById('offline').textContent.startsWith('Offline: ')")
    at.page.reload()
    at.wait(READY)
    assert at.page.evaluate("crossOriginIsolated")
    at.wait("document.getElementById('offline').textContent.startsWith('Offline: ')")
    assert at.text("message") == ""
    at.noise.clear()  # what the browser itself says of a server that has gone


def test_what_few_visitors_want_is_kept_from_the_first_visit_on(come, folder):
    """The networks that find people and faces, and stickers: Wear works without a network."""
    networks = [*folder.glob("page/selfie_*.onnx"), *folder.glob("page/blazeface_*.onnx")]
    with served(folder) as port:
        at = come(port)
        all_kept(at, folder)
        at.wait_here(lambda: {f"page/{n.name}" for n in networks} <= set(at.page.evaluate(KEPT)))
    at.page.reload()
    at.wait(READY)
    show(at, Image.fromarray(astronaut()))
    at.page.click("#wear label:has([value=glasses])")
    at.wait("document.getElementById('worn').width > 1")
    assert at.text("message") == ""
    at.page.select_option("#draw", "people")
    at.wait("document.querySelector('.viewer.blended') !== null")
    assert at.text("message") == ""
    at.noise.clear()  # what the browser itself says of a server that has gone


@pytest.mark.campaign
def test_a_new_version_is_there_at_once_and_says_so(come, folder, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    page = other / "index.html"
    page.write_text(page.read_text().replace("<title>distill lens</title>", "<title>new</title>"))
    (script,) = other.glob("page/index-*.js")
    # As a build would: what imports it has another name, too.
    scripts = [each for each in other.glob("page/*.js") if script.stem in each.read_text()]
    renamed = {each.name: f"{each.stem[:-8]}another1.js" for each in {script, *scripts}}
    for part in (page, *other.glob("page/*.js")):
        text = part.read_text()
        for old, new in renamed.items():
            text = text.replace(old, new)
        part.write_text(text)
        part.with_name(f"{part.name}.gz").unlink(missing_ok=True)
    for old, new in renamed.items():
        (other / "page" / old).rename(other / "page" / new)
    with served(folder) as port:
        at = come(port)
        all_kept(at, folder)
    with served(other, port):
        at.page.reload()
        at.wait(READY)
        assert at.page.title() == "new"
        at.wait("document.getElementById('message').textContent.includes('new version')")
        kept = at.page.evaluate(KEPT)
        for old, new in renamed.items():
            assert f"page/{new}" in kept
            assert f"page/{old}" not in kept
    at.noise.clear()


def test_it_can_be_installed(visit, address):
    at = visit()
    link = at.page.get_attribute("link[rel=manifest]", "href")
    found = at.page.evaluate(
        "async (href) => { const reply = await fetch(href);"
        " return [reply.headers.get('content-type'), await reply.json()]; }",
        link,
    )
    kind, manifest = found
    assert kind == "application/manifest+json"
    assert (manifest["display"], manifest["start_url"]) == ("standalone", "./")
    for icon in manifest["icons"]:
        size = at.page.evaluate(
            "async (src) => { const image = new Image(); image.src = src; await image.decode();"
            " return `${image.naturalWidth}x${image.naturalHeight}`; }",
            icon["src"],
        )
        assert icon["sizes"] in ("any", size)
