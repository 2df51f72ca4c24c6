"""A student in a server: `distill.load` beside ONNX Runtime alone, memory of threads, a cold start.

    python benchmarks/serving.py [--parts calls memory cold] [--students comic hayao]

calls: uint8 (H, W, 3) to the same, round by round in turn; the least processor time of all rounds,
with one thread the time of a call where nothing else runs, and its ratio to a session of the whole
graph with nothing but the conversion of bytes. memory: resident
MiB of a process while threads call one stylizer. cold: `distill stylize` of one picture as a
process of its own, wall clock and CPU time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from PIL import Image
from skimage import data

import distill
from distill.models import zoo

BATCH = 8  # pictures of a list
OVERHEAD = 1.3  # of the plain session's time: what a call may take


def picture(side: int) -> np.ndarray:
    """scikit-image's astronaut, uint8 (side, side, 3)."""
    return np.asarray(Image.fromarray(data.astronaut()).resize((side, side), Image.LANCZOS))


def plain_call(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """ONNX Runtime on the shipped file: uint8 (H, W, 3) to the same."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(str(zoo.find(name)), options, providers=providers)

    def call(pixels: np.ndarray) -> np.ndarray:
        planes = pixels.transpose(2, 0, 1)[None].astype(np.float32) / 255
        (output,) = session.run(None, {"photo": planes})
        return (output[0].clip(0, 1) * 255).round().astype(np.uint8).transpose(1, 2, 0)

    return call


def calls(name: str, side: int, rounds: int) -> dict[str, float]:
    """The least milliseconds a picture of each way, all ways in turn."""
    stylize = distill.load(name, device="cpu", threads=1)
    pixels, plain = picture(side), plain_call(name)
    photo = Image.fromarray(pixels)
    batch = np.stack([pixels] * BATCH)
    ways: dict[str, tuple[Callable[[], Any], int]] = {
        "ONNX Runtime": (lambda: plain(pixels), 1),
        "array": (lambda: stylize(pixels), 1),
        "size=": (lambda: stylize(pixels, size=side), 1),
        "picture": (lambda: stylize(photo), 1),
        f"batch of {BATCH}": (lambda: stylize(batch), BATCH),
    }
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for way, (call, count) in ways.items():
            begun = time.thread_time()
            call()
            least[way] = min(least[way], (time.thread_time() - begun) / count * 1000)
    return least


def resident() -> float:
    """MiB of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def memory(name: str, side: int, threads: int, count: int) -> dict[str, Any]:
    """Resident MiB before, and at most within each tenth of the calls, of so many threads."""
    stylize = distill.load(name, device="cpu", threads=1)
    pixels = picture(side)
    expected, before = stylize(pixels), resident()
    done = [0] * threads
    different = [0] * threads

    def work(number: int) -> None:
        for _ in range(count):
            different[number] += not np.array_equal(stylize(pixels), expected)
            done[number] += 1

    crew = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    most, begun = [0.0] * 10, time.perf_counter()
    for each in crew:
        each.start()
    while any(each.is_alive() for each in crew):
        tenth = min(9, 10 * sum(done) // (threads * count))
        most[tenth] = max(most[tenth], resident())
        time.sleep(0.02)
    seconds = time.perf_counter() - begun
    return {"before": before, "most": most, "s": seconds, "different": sum(different)}


def cold(rounds: int) -> dict[str, float]:
    """The least seconds of `distill stylize` of one picture: wall clock, CPU."""
    least = {"wall": float("inf"), "cpu": float("inf")}
    with tempfile.TemporaryDirectory() as folder:
        Image.fromarray(picture(512)).save(Path(folder) / "photo.png")
        typed = [
            sys.executable,
            "-m",
            "distill",
            "stylize",
            "photo.png",
            "style=comic",
            "threads=1",
        ]
        for _ in range(rounds):
            begun, before = time.perf_counter(), os.times()
            subprocess.run(typed, check=True, cwd=folder, stdout=subprocess.DEVNULL)
            wall, after = time.perf_counter() - begun, os.times()
            spent = after.children_user + after.children_system
            spent -= before.children_user + before.children_system
            least = {"wall": min(least["wall"], wall), "cpu": min(least["cpu"], spent)}
    return least


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = ["calls", "memory", "cold"]
    options.add_argument("--parts", nargs="+", choices=parts, default=parts)
    options.add_argument("--students", nargs="+", default=["comic", "hayao"])
    options.add_argument("--sides", nargs="+", type=int, default=[256, 512])
    options.add_argument("--rounds", type=int, default=50)
    options.add_argument("--threads", type=int, default=50, help="of memory (%(default)s)")
    options.add_argument("--calls", type=int, default=500, help="of each of them (%(default)s)")
    args = options.parse_args()
    if "calls" in args.parts:
        for name in args.students:
            for side in args.sides:
                least = calls(name, side, args.rounds)
                base = least["ONNX Runtime"]
                print(f"\n| {name} {side}² | ms a picture | ratio (wanted ≤ {OVERHEAD}) |")
                print("| --- | ---: | ---: |")
                for way, ms in least.items():
                    print(f"| {way} | {ms:.2f} | {ms / base:.2f} |", flush=True)
    if "memory" in args.parts:
        print("\nmemory, MiB:", json.dumps(memory("comic", 256, args.threads, args.calls)))
    if "cold" in args.parts:
        print("\ncold start, s:", json.dumps(cold(min(args.rounds, 10))))


if __name__ == "__main__":
    main()
