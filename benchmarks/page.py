"""Frames a second of the page of distill.lens, in Chromium, from a camera that is a video file.

    python benchmarks/page.py [--students hayao toon] [--sizes 256 384] [--threads 1 2]
                              [--draw everything people]

Needs Debian's chromium (or CHROMIUM=…) and `pip install 'distill[browser]'`. The camera gives 30
frames a second, so no figure is above that; the milliseconds say what is left. CPU ms are the
worker's own a frame, which what else the machine does changes little; Linux tells them.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from distill.config.compose import load
from distill.config.settings.commands import Lens
from distill.live import lens_folder, page_students, webpage
from distill.live.server import bind

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.chromium_page import FLAGS, chromium, write_clip

READY = 60  # seconds


def main() -> None:
    """Every student at every size and number of threads, one after the other."""
    options = parsed()
    with tempfile.TemporaryDirectory() as name:
        folder, clip = Path(name) / "lens", Path(name) / "face.y4m"
        write_clip(clip)
        names = ",".join(options.students)
        settings = load("lens", [f"students=[{names}]", f"output={folder}", "port=0"], Lens)
        lens_folder.build(webpage.find(), page_students.choose(settings), settings)
        server = bind(folder, settings)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        flags = [*FLAGS, f"--use-file-for-fake-video-capture={clip}"]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=flags)
            print(f"Chromium {browser.version}\n")
            print("student   size  threads  draws       FPS  CPU ms  frame ms = ", end="")
            print("prepare + network + finish")
            for threads in options.threads:
                url = f"http://127.0.0.1:{server.server_port}/?threads={threads}"
                visit(browser, url, options, threads)
            browser.close()


def visit(browser: Any, url: str, options: argparse.Namespace, threads: int) -> None:
    page = browser.new_context(permissions=["camera"]).new_page()
    page.goto(url)
    wait(page, "document.getElementById('meter').textContent.includes('FPS')")
    for student in options.students:
        page.check(f"input[value={student}]", force=True)
        wait(page, f"document.getElementById('tag').textContent === '{student}'")
        for size in options.sizes:
            page.select_option("#size", str(size))
            wait(page, f"distill.last().then((l) => l.width === {size})")
            for part in options.draw:
                page.select_option("#draw", part)
                cut = str(part != "everything").lower()
                wait(page, f"viewer.classList.contains('blended') === {cut}")
                time.sleep(3)  # the browser compiles while it runs
                found = measured(page, options.seconds)
                print(f"{student:9} {size:4}  {threads:7}  {part:10}  {found}")
    page.close()


def measured(page: Any, seconds: float) -> str:
    """Frames over the whole span; the median of the milliseconds that the page tells meanwhile."""
    told, start = [page.evaluate("distill.speed()")], time.monotonic()
    cpu = worker_seconds()
    while time.monotonic() < start + seconds:
        time.sleep(0.5)
        told.append(page.evaluate("distill.speed()"))
    frames = told[-1]["frames"] - told[0]["frames"]
    fps = frames / (time.monotonic() - start)
    own = 1000 * (worker_seconds() - cpu) / max(1, frames)
    parts = [sorted(t[key] for t in told)[len(told) // 2] for key in ("prepare", "run", "finish")]
    shares = " + ".join(f"{part:.1f}" for part in parts)
    return f"{fps:4.1f}  {own:6.1f}  {sum(parts):8.1f} = {shares}"


def worker_seconds() -> float:
    """CPU time of the page's workers, below this process; 0 where the system tells none."""
    total = 0
    for name in Path("/proc").glob("[0-9]*/task/*/comm"):
        try:
            worker = name.read_text().startswith("DedicatedWorker")
            if worker and _is_ours(int(name.parts[2])):
                total += int(name.with_name("schedstat").read_text().split()[0])
        except OSError:
            pass  # it has ended
    return total / 1e9


def _is_ours(process: int) -> bool:
    while process > 1 and process != os.getpid():
        status = Path(f"/proc/{process}/stat").read_text()
        process = int(status.rpartition(")")[2].split()[1])  # its parent
    return process > 1


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
    parser.add_argument("--seconds", type=float, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
