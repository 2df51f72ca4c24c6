"""Frames a second of the page of distill.lens, in Chromium, from a camera that is a video file.

    python benchmarks/page.py [--students hayao toon] [--sizes 256 384] [--threads 1 2]
                              [--draw everything people] [--also apart=1] [--square]
    python benchmarks/page.py --watch 120      # how long the page itself waits, and its memory
    python benchmarks/page.py --builds hayao   # ONNX Runtime's builds, without the page

Needs Debian's chromium (or CHROMIUM=…) and `pip install 'distill[browser]'`. The camera gives 30
frames a second, so no figure is above that; the milliseconds say what is left. Beside other work
they say little: the CPU time of the page's worker a frame does. That of the network alone is taken
after it, in another worker, while the page goes on.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from distill.config.compose import load
from distill_lens import lens_folder, webpage
from distill_lens.server import bind
from distill_lens.settings import Lens

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.chromium_page import FLAGS, chromium, write_clip
from support.page_memory import MEASURES, megabytes, worker_seconds

READY = 300  # seconds: the machine may be busy
RUNTIME = webpage.SOURCES / "node_modules" / "onnxruntime-web" / "dist"
BUILDS = {  # of onnxruntime-web: its module and its parts
    "wasm": ("ort.wasm.min.mjs", "ort-wasm-simd-threaded"),
    "webgpu, asyncify": ("ort.webgpu.min.mjs", "ort-wasm-simd-threaded.asyncify"),
    "webgpu, jspi": ("ort.jspi.min.mjs", "ort-wasm-simd-threaded.jspi"),
    "webgpu and webgl, jsep": ("ort.min.mjs", "ort-wasm-simd-threaded.jsep"),
}
# A worker that runs a network over and over, and tells how often.
ALONE = """
self.onmessage = async ({ data: { module, parts, file, width, height } }) => {
  const ort = await import(`./bare/${module}`);
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmPaths = new URL("./bare/", self.location.href).href;
  ort.env.logLevel = "error";
  const options = { executionProviders: ["wasm"], freeDimensionOverrides: { width, height } };
  const session = await ort.InferenceSession.create(file, options);
  const values = Float32Array.from({ length: 3 * width * height }, (_, i) => (i % 251) / 250);
  const input = new ort.Tensor("float32", values, [1, 3, height, width]);
  for (let runs = 1; ; runs++) {
    await session.run({ [session.inputNames[0]]: input });
    postMessage(runs);
    if (runs % 8 === 0) await new Promise((go) => setTimeout(go));
  }
};
"""
UNFOLDED = """addEventListener("DOMContentLoaded", () =>
  document.querySelectorAll(".group").forEach((group) => (group.open = true)));"""
START = """(given) => {
  window.alone?.terminate();
  window.runs = 0;
  window.alone = new Worker("bare.js", { type: "module" });
  alone.onmessage = ({ data }) => (window.runs = data);
  alone.onerror = ({ message }) => (window.runs = `failed: ${message}`);
  alone.postMessage(given);
}"""


def main() -> None:
    """Every student at every size and number of threads, one after the other; or what is asked."""
    options = parsed()
    with served(options) as (url, clip), sync_playwright() as playwright:
        flags = [*FLAGS, f"--use-file-for-fake-video-capture={clip}"]
        browser = playwright.chromium.launch(executable_path=chromium(), args=flags)
        print(f"Chromium {browser.version}\n")
        page = browser.new_context(permissions=["camera"]).new_page()
        page.add_init_script(UNFOLDED)
        if options.watch:
            watch(page, url, options)
        elif options.builds:
            compare_builds(page, url, options)
        else:
            print("student   size  threads  draws       FPS   frame ms = ", end="")
            print("prepare + network + finish   CPU ms of a frame, of the network alone")
            for threads in options.threads:
                visit(page, f"{url}?threads={threads}&{options.also}", options, threads)
        browser.close()


@contextmanager
def served(options: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    """A lens of those students, with what runs networks alone beside it; and the camera's clip."""
    with tempfile.TemporaryDirectory() as name:
        folder, clip = Path(name) / "lens", Path(name) / "face.y4m"
        write_clip(clip, options.square)
        names = ",".join(options.students)
        settings = load("lens", [f"students=[{names}]", f"output={folder}", "port=0"], Lens)
        lens_folder.build(webpage.find(), lens_folder.choose_students(settings), settings)
        (folder / "bare").mkdir()
        for module, parts in list(BUILDS.values())[: None if options.builds else 1]:
            for file in (module, f"{parts}.mjs", f"{parts}.wasm"):
                shutil.copy(RUNTIME / file, folder / "bare")
        (folder / "bare.js").write_text(ALONE)
        server = bind(folder, settings)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", clip
        server.shutdown()


def visit(page: Any, url: str, options: argparse.Namespace, threads: int) -> None:
    page.goto(url)
    wait(page, "document.getElementById('meter').textContent.includes('FPS')")
    own = set(worker_seconds())  # the page's worker and its threads
    for student in options.students:
        page.check(f"input[value={student}]", force=True)
        shown = student.replace("-", " ")
        wait(page, f"document.getElementById('tag').textContent.toLowerCase() === '{shown}'")
        for size in options.sizes:
            page.select_option("#size", str(size))
            wait(page, f"distill.last().then((l) => l.width === {size})")
            for part in options.draw:
                page.select_option("#draw", part)
                cut = str(part != "everything").lower()
                wait(page, f"viewer.classList.contains('blended') === {cut}")
                time.sleep(3)  # the browser compiles while it runs
                found = measured(page, own, options.seconds)
                alone = network_alone(page, own, student, size, options.seconds)
                print(f"{student:9} {size:4}  {threads:7}  {part:10}  {found}, {alone:.1f}")
    page.goto("about:blank")


def begin_alone(page: Any, student: str, size: int, build: str = "") -> None:
    """The network alone, at the size that it has for the camera's frames; of a build, square."""
    files = page.evaluate("fetch('manifest.json').then((reply) => reply.json())")["students"]
    (file,) = (each["file"] for each in files if each["name"] == student)
    height = size if build else page.evaluate("distill.last().then((l) => l.height)")
    module, parts = BUILDS[build or "wasm"]
    given = {"module": module, "parts": parts, "file": file, "width": size, "height": height}
    page.evaluate(START, given)
    wait(page, "runs !== 0")
    if isinstance(runs := page.evaluate("runs"), str):
        raise SystemExit(f"{build}: {runs}")


def measured(page: Any, own: set[int], seconds: float) -> str:
    """Frames over the whole span, the median of the milliseconds that the page tells meanwhile, and
    the CPU time of its worker a frame."""
    told, cpu, start = [page.evaluate("distill.speed()")], worker_seconds(), time.monotonic()
    while time.monotonic() < start + seconds:
        time.sleep(0.5)
        told.append(page.evaluate("distill.speed()"))
    spent = worker_seconds()
    frames = told[-1]["frames"] - told[0]["frames"]
    fps = frames / (time.monotonic() - start)
    parts = [sorted(t[key] for t in told)[len(told) // 2] for key in ("prepare", "run", "finish")]
    shares = " + ".join(f"{part:.1f}" for part in parts)
    frame = 1000 * sum(spent[tid] - cpu[tid] for tid in own) / frames
    return f"{fps:4.1f}  {sum(parts):8.1f} = {shares}   {frame:.1f}"


def network_alone(page: Any, own: set[int], student: str, size: int, seconds: float) -> float:
    """Milliseconds of CPU time a run, in a worker of its own."""
    begin_alone(page, student, size)
    time.sleep(3)
    runs, cpu = page.evaluate("runs"), worker_seconds()
    time.sleep(seconds)
    wait(page, f"runs > {runs}")  # beside other work a run may take longer
    runs, spent = page.evaluate("runs") - runs, worker_seconds()
    page.evaluate("alone.terminate()")
    return sum(1000 * (spent[tid] - cpu[tid]) / runs for tid in cpu if tid not in own)


def compare_builds(page: Any, url: str, options: argparse.Namespace) -> None:
    """Bytes of each build, and the CPU time of a run on WASM, one thread, at 256×256."""
    page.goto(url)
    wait(page, "document.getElementById('meter').textContent.includes('FPS')")
    page.click("#camera")  # off: the page's own worker rests
    page.wait_for_timeout(2000)
    before = worker_seconds()
    print("build                     bytes       .gz  CPU ms a run, least of three")
    for build, (_, parts) in BUILDS.items():
        if not (RUNTIME / f"{parts}.wasm").is_file():
            continue
        content = (RUNTIME / f"{parts}.wasm").read_bytes()
        best = []
        for _ in range(3):
            begin_alone(page, options.builds, 256, build)
            time.sleep(3)
            runs, cpu = page.evaluate("runs"), worker_seconds()
            time.sleep(options.seconds)
            runs, spent = page.evaluate("runs") - runs, worker_seconds()
            (tid,) = spent.keys() - before.keys()
            best.append(1000 * (spent[tid] - cpu[tid]) / runs)
            page.evaluate("alone.terminate()")
            time.sleep(0.5)
        packed = len(gzip.compress(content, 9))
        print(f"{build:22} {len(content):>10,} {packed:>9,}  {min(best):.1f}")


def watch(page: Any, url: str, options: argparse.Namespace) -> None:
    """The camera for so many seconds: tasks that kept the page's main thread, and its memory."""
    page.add_init_script(MEASURES)
    page.goto(f"{url}?threads=1&size={options.sizes[0]}")
    wait(page, "document.getElementById('meter').textContent.includes('FPS')")
    time.sleep(15)
    page.evaluate("longTasks.length = 0")
    before, frames = megabytes(page), page.evaluate("distill.speed().frames")
    time.sleep(options.watch)
    after, frames = megabytes(page), page.evaluate("distill.speed().frames") - frames
    tasks = page.evaluate("longTasks")
    print(f"{options.watch} s of camera, {frames} frames: {len(tasks)} tasks above 50 ms", end="")
    print(f" on the main thread{f', the longest {max(tasks):.0f} ms' if tasks else ''}")
    for name, value in after.items():
        print(f"  {name}: {before[name]:.1f} MB at the beginning, {value:.1f} MB at the end")
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"  load of the machine: {load}")


def wait(page: Any, condition: str) -> None:
    end = time.monotonic() + READY
    while not page.evaluate(condition):
        if time.monotonic() > end:
            raise SystemExit(f"nothing after {READY} s: {page.inner_text('#message')}")
        time.sleep(0.1)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--students", nargs="+", default=["hayao"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[256])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--draw", nargs="+", default=["everything"])
    parser.add_argument("--also", default="", help="of the page's link, apart=1&wear=hair,glasses")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--square", action="store_true", help="a square camera instead of 4:3")
    parser.add_argument("--watch", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--builds", metavar="STUDENT", help="compare builds with this student")
    return parser.parse_args()


if __name__ == "__main__":
    main()
