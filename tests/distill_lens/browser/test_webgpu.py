"""The shipped students on WebGPU: emulated on the CPU where there is no graphics card."""

import re
import time
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image

from distill.config.compose import load
from distill.export.fp16 import halved
from distill.models import zoo
from distill.stylize.stylizing import open_student
from distill_lens import lens_folder, webpage
from distill_lens.server import bind
from distill_lens.settings import Lens
from support.chromium_page import (
    FLAGS,
    READY,
    SLOW,
    WEBGPU,
    canvas,
    chromium,
    clip_frame,
    write_frames,
)
from support.guided_filter import guided
from support.lens_page import running

SHADE = 2 / 255
ON_CPU = ("poster",)  # whose operators ONNX Runtime leaves on the CPU
SIZE = 128  # pixels, the least that the page offers


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A function that serves a student of the package, in float32 and in half precision."""
    with ExitStack() as servers:

        @cache
        def serve(name: str) -> tuple[Path, str]:
            place = tmp_path_factory.mktemp("gpu")
            onnx.save(halved(onnx.load(zoo.find(name))), half := place / f"{name}_fp16.onnx")
            words = [f"students=[{name},{half}]", f"output={place / 'built'}", "port=0"]
            settings = load("lens", words, Lens)
            students = lens_folder.choose_students(settings)
            folder = lens_folder.build(webpage.find(), students, settings)
            return folder, servers.enter_context(running(bind(folder, settings)))

        yield serve


@pytest.fixture(scope="module")
def gpu_browser(playwright, tmp_path_factory):
    """Its camera shows the astronaut's face, which does not move."""
    clip = tmp_path_factory.mktemp("camera") / "still.y4m"
    write_frames(clip, [clip_frame(0)] * 2)
    flags = [flag for flag in FLAGS if flag != "--disable-gpu"]
    flags += [*WEBGPU, f"--use-file-for-fake-video-capture={clip}"]
    found = playwright.chromium.launch(executable_path=chromium(), args=flags)
    yield found
    found.close()


@pytest.mark.timeout(2 * SLOW)
@pytest.mark.parametrize("precision", ["", pytest.param("_fp16", marks=pytest.mark.campaign)])
@pytest.mark.parametrize(
    "style",
    [
        pytest.param(style, marks=() if style in ("hayao-small", *ON_CPU) else pytest.mark.campaign)
        for style in sorted(zoo.shipped())
    ],
)
def test_a_student_gives_what_onnx_runtime_gives_in_python(
    visit, gpu_browser, site, style, precision
):
    folder, url = site(style)
    query = f"?backend=webgpu&style={style}{precision}&compare=0&size={SIZE}"
    at = visit(query, url=url, browser=gpu_browser, ready=False)
    end = time.monotonic() + SLOW
    while not at.page.evaluate(READY):
        assert time.monotonic() < end, at.text("message")
        time.sleep(0.2)
    refused = False
    if at.page.evaluate("distill.speed().backend.name") != "WebGPU":
        refused = style in ON_CPU and "fallback to CPU EP" in str(at.noise)
        if refused:  # it alone runs on WASM, and draws
            assert "assigned to the default CPU EP" in at.text("why")
            at.noise.clear()
        elif not precision:
            lacking = at.page.evaluate("navigator.gpu?.requestAdapter().then((a) => !a) ?? true")
            assert lacking, at.text("why")  # an adapter that is there must do
            pytest.skip(f"no WebGPU, not even emulated: {at.text('why')}")
        else:
            has = "navigator.gpu?.requestAdapter().then((a) => a?.features.has('shader-f16'))"
            assert not at.page.evaluate(has), at.text("why")
            pytest.skip("the adapter has no half precision (shader-f16)")
    else:
        assert style not in ON_CPU, "it runs on WebGPU now"
    (file,) = folder.glob(f"students/{style}{precision}-[0-9a-f]*.onnx")
    photo, output = at.last()
    assert photo.shape == output.shape
    assert photo.shape[-1] == SIZE
    student = open_student(file, 1)
    with Image.open(lens_folder.EXAMPLE) as example:
        height = SIZE * example.height / example.width
    rim = round((photo.shape[2] - height) / 2)  # rows that mirror what is shown
    shown = np.ascontiguousarray(photo[:, :, rim : photo.shape[2] - rim])
    summary = student.summary(shown) if student.takes_summary else None
    # Rounding in the thumbnail moves borders between poster's inks a little.
    assert np.abs(output - student(photo, summary)).max() <= (3 * SHADE if refused else SHADE)
    assert np.abs(output - photo).mean() > 0.03


# Chromium's emulated card passes for a real one, whose network is timed beside the CPU's.
PASSES = """for (const [name, value] of [["isFallbackAdapter", false], ["architecture", "card"]])
  Object.defineProperty(GPUAdapterInfo.prototype, name, { get: () => value });
"""


@pytest.mark.timeout(2 * SLOW)
@pytest.mark.campaign
def test_card_and_cpu_are_timed_once(visit, gpu_browser, address):
    def passing(route) -> None:
        script = route.fetch()
        route.fulfill(response=script, body=PASSES + script.text())

    routes = {"**/page/worker-*.js": passing}
    at = visit("?compare=0", browser=gpu_browser, routes=routes, ready=False)
    at.wait(READY, patience=SLOW)
    if "ms a picture" not in at.text("why"):
        pytest.skip(f"no WebGPU, not even emulated: {at.text('why')}")
    ran = at.page.evaluate("distill.speed().backend.name")
    pattern = r"WASM, \d.*faster here than WebGPU" if ran == "WASM" else "WebGPU: .*faster here"
    assert re.match(pattern, at.text("why"))
    said, names = at.text("why"), []
    at.page.on("request", lambda request: names.append(request.url))
    at.page.reload()
    at.wait(READY, patience=SLOW)
    assert at.text("why") == said  # the very figures: it was not timed again
    assert any("asyncify" in name for name in names) is (ran == "WebGPU")
    at.page.click("#forget")
    at.wait("caches.keys().then((keys) => !keys.includes('distill-lens-trials'))")


# Bytes of pictures that the worker brings to the card and back: not the numbers of a summary.
COUNTS = """
self.copied = 0;
const count = (of, name, bytes) => {
  const own = of.prototype[name];
  of.prototype[name] = function (...given) {
    const size = bytes.apply(this, given);
    if (size > 16384) copied += size;
    return own.apply(this, given);
  };
};
count(GPUBuffer, "mapAsync", function () { return this.size; });
count(GPUQueue, "writeBuffer", (buffer, at, data, from, size) => size ?? data.byteLength);
const seen = (x, y, width, height) => 4 * width * height;
count(OffscreenCanvasRenderingContext2D, "getImageData", seen);
"""
LACKS = """
const get = OffscreenCanvas.prototype.getContext;
OffscreenCanvas.prototype.getContext = function (kind, options) {
  return kind === "webgpu" ? null : get.call(this, kind, options);
};
"""


@pytest.mark.timeout(2 * SLOW)
@pytest.mark.parametrize("lacks", [False, pytest.param(True, marks=pytest.mark.campaign)])
def test_a_cameras_frames_stay_on_the_card(visit, gpu_browser, lacks):
    """From its picture to the screen, enlarged; where the card has no canvas, by the CPU."""

    def counting(route) -> None:
        script = route.fetch()
        route.fulfill(response=script, body=COUNTS + LACKS * lacks + script.text())

    options = {"size": 128, "viewport": {"width": 900, "height": 600}, "camera": True}
    routes = {"**/page/worker-*.js": counting}
    query = "?backend=webgpu&compare=0&style=negative&mirror=0"
    at = visit(query, browser=gpu_browser, routes=routes, ready=False, **options)
    at.wait(READY, patience=SLOW)
    if at.page.evaluate("distill.speed().backend.name") != "WebGPU":
        pytest.skip(f"no WebGPU, not even emulated: {at.text('why')}")
    (worker,) = at.page.workers
    frames = "distill.speed().frames"
    at.wait(f"{frames} > 3", patience=SLOW)
    before, copied = at.page.evaluate(frames), worker.evaluate("copied")
    at.wait(f"{frames} >= {before + 4}", patience=SLOW)
    assert (worker.evaluate("copied") > copied) is lacks
    seen, drawn = at.last()
    assert seen.shape == (1, 3, 96, 128)
    assert np.abs(drawn - (1 - seen)).max() <= 1e-5
    found = canvas(at.page, "stylised")[..., :3].astype(float)
    assert found.shape[1] > 128
    photo = Image.fromarray(canvas(at.page, "photo")[..., :3]).resize(found.shape[1::-1])
    assert np.abs(found - guided(np.asarray(photo).astype(float), seen, drawn)).mean() < 3
