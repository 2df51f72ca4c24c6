"""The page's first seconds: what is asked for when, what is seen meanwhile, what a host sends."""

import threading

import pytest

from distill_lens.server import Handler
from support.chromium_page import READY, canvas


class Held:
    """Requests that wait until `release`."""

    def __init__(self) -> None:
        self.routes: list = []
        self.open = False

    def __call__(self, route) -> None:
        if self.open:
            route.continue_()
        else:
            self.routes.append(route)

    def release(self) -> None:
        self.open = True
        for route in self.routes:
            route.continue_()


def test_the_runtime_and_the_student_come_side_by_side(visit):
    runtime, student = Held(), Held()
    at = visit(ready=False, routes={"**/ort-wasm*.wasm*": runtime, "**/students/*.onnx": student})
    at.wait_here(lambda: runtime.routes and student.routes)
    runtime.release()
    student.release()
    at.wait(READY)


def test_a_file_is_named_after_the_style_that_drew_it(visit):
    """Which is the one before, until the chosen one has come."""
    hayao = Held()
    at = visit("?compare=0", routes={"**/students/hayao*.onnx": hayao})
    at.page.check("input[value=hayao]", force=True)
    at.wait_here(lambda: hayao.routes)
    for name in ("negative", "hayao"):
        at.wait(f"document.getElementById('tag').textContent.toLowerCase() === '{name}'")
        at.settle()
        with at.page.expect_download() as found:
            at.page.click("#save")
        assert found.value.suggested_filename == f"example-{name}.png"
        if not hayao.open:
            hayao.release()


@pytest.mark.parametrize("camera", [False, True])
@pytest.mark.campaign
def test_the_photo_is_there_at_once_and_nothing_to_save(visit, camera):
    runtime = Held()
    at = visit(ready=False, routes={"**/ort-wasm*.wasm*": runtime}, camera=camera)
    at.wait("document.querySelector('#viewer.alone') !== null")
    photo = canvas(at.page, "photo")
    assert photo[..., :3].std() > 20
    box = at.page.locator("#viewer").bounding_box()
    assert at.page.evaluate("getComputedStyle(photo).clipPath") == "none"
    assert box["width"] > 100
    assert at.page.is_disabled("#save")
    assert at.page.is_visible("#loading")
    runtime.release()
    at.wait(READY)
    assert at.page.is_enabled("#save")
    assert at.page.is_hidden("#loading")
    assert at.page.evaluate("getComputedStyle(photo).clipPath") != "none"


def test_the_bar_tells_bytes(visit, monkeypatch):
    """Half of the runtime, as it travels, and no more until it is let go."""
    half, rest = threading.Event(), threading.Event()
    plain = Handler.copyfile

    def slowly(self, source, outputfile) -> None:
        if self.path.endswith(".wasm.gz"):
            content = source.read()
            outputfile.write(content[: len(content) // 2])
            outputfile.flush()
            half.set()
            rest.wait(60)
            outputfile.write(content[len(content) // 2 :])
        else:
            plain(self, source, outputfile)

    monkeypatch.setattr(Handler, "copyfile", slowly)
    at = visit(ready=False)
    assert half.wait(60)
    at.wait("(bar => bar.max > 3e6 && bar.value > bar.max / 3)(document.querySelector('progress'))")
    value, most = at.page.evaluate(
        "(bar => [bar.value, bar.max])(document.querySelector('progress'))"
    )
    assert value < 0.75 * most
    assert at.text("loading-text").endswith(f" of {most / 1e6:.1f} MB")
    rest.set()
    at.wait(READY)
    assert at.page.is_hidden("#loading")
