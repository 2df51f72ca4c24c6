"""Flicker of stylised videos beyond their motion, which is known here, by way of smoothing.

    python benchmarks/flicker.py [PHOTO …] [--students swirl comic] [--frames 16] [--size 640x480]

A camera that stands, pans or sways over each photo, with noise of 2.5 levels. Printed as a Markdown
table for each student: the output without smoothing, with the mixing of what stands still that
`smooth=` was before, and `smooth=0.8` of distill.stylize. Flicker is the mean absolute difference
of a frame and the one before, moved by the known way, as a multiple of the input's own. A blurred
output flickers less: sharpness, the mean difference of neighbouring pixels, stands beside it, as a
share of that without smoothing, and the flicker divided by it. Ghosts are what is left of another
scene after a cut: levels by which the output differs from the frame's own. CPU ms a frame are of
all steps, of one thread each; a machine of two idle cores gives up to 2000 / ms frames a second.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from common import Table
from moving import NOISE
from PIL import Image
from skimage import data

from distill.models import zoo
from distill.stylize import render
from distill.stylize.onnx_student import ImageModel
from distill.stylize.stylizing import open_student
from distill_video.frames import frame_steps
from distill_video.reader import VideoFrame
from distill_video.smoothing import SmoothSummary

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.still_smoother import StillSmoother

STRENGTH = 0.8
EDGE = 24  # pixels around a frame in which nothing is compared: it has come in from beyond
SETTLED = 4  # frames until the mixing is that of all others
AFFINE, BICUBIC = Image.Transform.AFFINE, Image.Resampling.BICUBIC
Frames = list[np.ndarray]


def way(mode: str, frame: int) -> np.ndarray:
    """How far the camera has moved, in pixels to the right and down."""
    sway = (0.6 * frame + 4 * np.sin(frame / 5), 3 * np.sin(frame / 4))
    ways = {"still": (0, 0), "slow pan": (0.35 * frame, 0.15 * frame), "sway": sway}
    return np.array(ways.get(mode, (2.3 * frame, 0.6 * frame)), float)


def clip(photo: Image.Image, mode: str, count: int, size: tuple[int, int]) -> Frames:
    """uint8 (height, width, 3), each with noise of its own."""
    scale = max((side + 120) / length for side, length in zip(size, photo.size, strict=True))
    scene = photo.resize([round(side * scale) for side in photo.size], Image.Resampling.LANCZOS)
    rng, frames = np.random.default_rng(0), []
    for number in range(count):
        right, down = way(mode, number) + 40
        seen = np.asarray(scene.transform(size, AFFINE, (1, 0, right, 0, 1, down), BICUBIC))
        noisy = seen + rng.normal(0, NOISE, seen.shape)
        frames.append(noisy.clip(0, 255).round().astype(np.uint8))
    return frames


def flicker(frames: Frames, mode: str) -> float:
    """Mean difference of consecutive frames beyond the camera's way, in levels of 255."""
    differences = []
    for number, (before, now) in enumerate(pairwise(frames), start=1):
        right, down = way(mode, number) - way(mode, number - 1)
        picture = Image.fromarray(before)
        moved = picture.transform(picture.size, AFFINE, (1, 0, right, 0, 1, down), BICUBIC)
        difference = np.abs(now - np.asarray(moved, np.float32))[EDGE:-EDGE, EDGE:-EDGE]
        differences.append(difference.mean())
    return float(np.mean(differences[SETTLED:]))


def sharpness(frames: Frames) -> float:
    """Mean difference of neighbouring pixels, in levels of 255."""
    steps = [np.abs(np.diff(f.astype(np.float32), axis=axis)) for f in frames for axis in (0, 1)]
    return float(np.mean([each.mean() for each in steps[2 * SETTLED :]]))


def stylised(
    student: ImageModel, frames: Frames, way_of_smoothing: str
) -> tuple[Frames, Frames, float]:
    """The outputs, those before smoothing, and CPU milliseconds a frame."""
    smooth = STRENGTH if way_of_smoothing == "smooth=" else 0.0
    still = StillSmoother(STRENGTH) if way_of_smoothing == "still" else None
    strength = STRENGTH if way_of_smoothing != "none" else 0.0
    summary = SmoothSummary(student.summary, strength) if student.takes_summary else None

    def stylise(frame: np.ndarray) -> np.ndarray:
        picture = Image.fromarray(frame)
        output = render.stylise_rgb(picture, student, summarise=summary)
        return np.asarray(output.convert("RGB"))

    steps, outputs, own = frame_steps(stylise, smooth, 32.0), [], []
    start = time.process_time()
    for frame in frames:
        item = VideoFrame(0, 0, frame)
        for step in steps:
            item = step(item)
        assert item.stylised is not None
        assert item.smoothed is not None
        own.append(item.stylised)
        outputs.append(still(frame, item.smoothed) if still else item.smoothed)
    return outputs, own, 1000 * (time.process_time() - start) / len(frames)


def rows_of(student: ImageModel, photos: list[Image.Image], given: argparse.Namespace) -> list:
    rows, size = [], tuple(map(int, given.size.split("x")))
    for mode in ("still", "slow pan", "sway", "pan", "cut"):
        figures: dict[str, list] = {}
        for number, photo in enumerate(photos):
            frames = clip(photo, mode, given.frames, size)
            if mode == "cut":
                other = photos[number - 1] if len(photos) > 1 else photo.transpose(1)
                frames = frames[: SETTLED + 1] + clip(other, "pan", 1, size)
            reference = 0.0
            for each in ("none", "still", "smooth="):
                outputs, own, ms = stylised(student, frames, each)
                if mode == "cut":
                    ghost = np.abs(outputs[-1].astype(float) - own[-1]).mean()
                    figures.setdefault(each, []).append([np.nan, np.nan, ghost, ms])
                    continue
                reference = reference or sharpness(outputs)
                times = flicker(outputs, mode) / flicker(frames, mode)
                share = sharpness(outputs) / reference
                figures.setdefault(each, []).append([times, share, np.nan, ms])
        for each, values in figures.items():
            times, share, ghost, ms = np.mean(values, 0)
            quality = ["", "", "", f"{ghost:.2f}"]
            if mode != "cut":
                quality = [f"{times:.2f}", f"{share:.2f}", f"{times / share:.2f}", ""]
            rows.append([mode, each, *quality, f"{ms:.0f}"])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", nargs="*", help="else scikit-image's astronaut and coffee")
    parser.add_argument("--students", nargs="*", default=["swirl", "hayao-small"])
    parser.add_argument("--frames", type=int, default=16)
    parser.add_argument("--size", default="640x480")
    given = parser.parse_args()
    photos = [Image.open(path).convert("RGB") for path in given.photos]
    photos = photos or [Image.fromarray(data.astronaut()), Image.fromarray(data.coffee())]
    head = ["camera", "smoothing", "flicker ×", "sharpness", "flicker / sharpness", "ghost", "ms"]
    for name in given.students:
        rows = rows_of(open_student(zoo.find(name), threads=1), photos, given)
        print(Table(f"{name}, {given.size}, {len(photos)} photos", head, rows), flush=True)


if __name__ == "__main__":
    main()
