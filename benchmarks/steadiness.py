"""What the filter over time takes away, and what it leaves behind, by strength.

    python benchmarks/steadiness.py [--students hayao toon] [--people] [--faces]
                                    [--frames 40]

Clips of known motion (see moving.py), as Steadiness on the page of distill.lens mixes them. Printed
as a Markdown table: of a still scene the share of values that jump by more than 16 of 255 levels
from one frame to the next; of a slow pan and of a hand's sway the share that is off by as much from
the frame's own output, which is what a ghost would be, and the dB between the two.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnxruntime
from common import Table
from moving import frames
from PIL import Image
from skimage import data

from distill.core.arrays import to_array, to_picture
from distill.models import zoo
from distill.stylize.onnx_student import ImageModel
from distill.stylize.stylizing import open_student

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support import blazeface
from support.still_smoother import StillSmoother

SIZE = 256, 192
JUMP = 16  # levels of 255
PEOPLE = Path(__file__).parents[1] / "web/networks/selfie_segmentation/selfie_segmentation.onnx"
Clips = dict[str, list[np.ndarray]]
STRENGTHS = (0.0, 0.6, 0.8, 0.9, 0.95)


def stylised(student: ImageModel, pictures: list[np.ndarray]) -> list[np.ndarray]:
    """uint8 (height, width, 3) in and out."""
    outputs = (student(to_array(Image.fromarray(picture))[None])[0, :3] for picture in pictures)
    return [np.asarray(to_picture(output)) for output in outputs]


def mixed(strength: float, pictures: list[np.ndarray], own: list[np.ndarray]) -> list[np.ndarray]:
    smoother = StillSmoother(strength)
    return [smoother(picture, output) for picture, output in zip(pictures, own, strict=True)]


def far(one: np.ndarray, other: np.ndarray) -> float:
    """The share of values that are more than a jump apart."""
    return float((np.abs(one.astype(float) - other) > JUMP).mean())


def psnr(one: np.ndarray, other: np.ndarray) -> float:
    return float(10 * np.log10(255**2 / np.square(one.astype(float) - other).mean()))


def people(pictures: list[np.ndarray]) -> list[np.ndarray]:
    """What the page's network says of each pixel: 255 where it surely shows people."""
    session = onnxruntime.InferenceSession(PEOPLE)
    found = []
    for picture in pictures:
        photo = Image.fromarray(picture).resize((256, 256), Image.Resampling.BILINEAR)
        (mask,) = session.run(None, {"photo": to_array(photo)[None]})
        grey = Image.fromarray((255 * mask[0, 0]).round().astype(np.uint8)).resize(SIZE)
        found.append(np.asarray(grey.convert("RGB")))
    return found


def opacity(mask: np.ndarray) -> np.ndarray:
    """As web/src/part_mask.ts makes one of it, in levels of 255."""
    return 255 * np.clip((mask / 255 - 0.1) / 0.8, 0, 1)


def faces(pictures: list[np.ndarray]) -> list[np.ndarray]:
    """The page's ovals of the faces (web/src/face_oval.ts), upright: 255 where opaque."""
    found = []
    for picture in pictures:
        wide, high = SIZE
        across, down = np.meshgrid(np.arange(wide) + 0.5, np.arange(high) + 0.5)
        mask = np.zeros((high, wide))
        for face in blazeface.faces(Image.fromarray(picture), least=0.6):
            left, top, right, bottom = face.box * [*SIZE, *SIZE]
            side = (right - left + bottom - top) / 2
            over = (across - (left + right) / 2) / (0.47 * side)
            below = (down - (top + bottom) / 2 + 0.06 * side) / (0.62 * side)
            share = ((1.08 - np.hypot(over, below)) / 0.16).clip(0, 1)
            mask = np.maximum(mask, share * share * (3 - 2 * share))
        found.append(np.repeat((255 * mask).round().astype(np.uint8)[..., None], 3, 2))
    return found


def rows_of(name: str, clips: Clips, own: Clips, shown: Callable = np.asarray) -> list[list[str]]:
    """One row a strength; `shown` is what is made of a mixed output before it is looked at."""
    rows = []
    for strength in STRENGTHS:
        made = {mode: mixed(strength, clips[mode], own[mode]) for mode in clips}
        seen = {mode: [shown(each) for each in made[mode]] for mode in clips}
        plain = {mode: [shown(each) for each in own[mode]] for mode in clips}
        jumps = np.mean([far(a, b) for a, b in pairwise(seen["still"])])
        row = [name, f"{strength:g}", f"{100 * jumps:.2f} %"]
        for mode in ("pan", "walk"):
            pairs = list(zip(seen[mode], plain[mode], strict=True))
            row.append(f"{100 * np.mean([far(a, b) for a, b in pairs]):.2f} %")
            row.append("" if not strength else f"{np.mean([psnr(a, b) for a, b in pairs[1:]]):.1f}")
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--students", nargs="*", default=["hayao", "toon"])
    parser.add_argument("--people", action="store_true", help="the mask of people, too")
    parser.add_argument("--faces", action="store_true", help="the mask of faces, too")
    parser.add_argument("--frames", type=int, default=40)
    given = parser.parse_args()
    photo = data.astronaut() / 255
    clips = {mode: [*frames(photo, given.frames, SIZE, mode)] for mode in ("still", "pan", "walk")}
    rows = []
    for name in given.students:
        student = open_student(zoo.find(name))
        rows += rows_of(name, clips, {mode: stylised(student, clips[mode]) for mode in clips})
    if given.people:
        own = {mode: people(clips[mode]) for mode in clips}
        rows += rows_of("people", clips, own, opacity)
    if given.faces:
        rows += rows_of("faces", clips, {mode: faces(clips[mode]) for mode in clips})
    head = ["student", "strength", "jumps, still", "ghosts, pan", "dB", "ghosts, walk", "dB"]
    print(Table(f"{SIZE[0]}×{SIZE[1]}, {given.frames} frames", head, rows))


if __name__ == "__main__":
    main()
