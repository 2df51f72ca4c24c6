"""What the filter over time takes away, and what it leaves behind, by strength.

    python benchmarks/steadiness.py [--students hayao toon] [--frames 40]

Clips of known motion (see moving.py), as `smooth=` of distill.stylize and Steadiness on the page
of distill.lens mix them. Printed as a Markdown table: of a still scene the share of values that
jump by more than 16 of 255 levels from one frame to the next; of a slow pan and of a hand's sway
the share that is off by as much from the frame's own output, which is what a ghost would be, and
the dB between the two.
"""

from __future__ import annotations

import argparse
from itertools import pairwise

import numpy as np
from common import Table
from moving import frames
from PIL import Image
from skimage import data

from distill import zoo
from distill.core.arrays import to_array, to_picture
from distill.inference.onnx_student import ImageModel
from distill.inference.stylizing import open_student
from distill.inference.video.smoothing import Smoother

SIZE = 256, 192
JUMP = 16  # levels of 255
STRENGTHS = (0.0, 0.6, 0.8, 0.9, 0.95)


def stylised(student: ImageModel, pictures: list[np.ndarray]) -> list[np.ndarray]:
    """uint8 (height, width, 3) in and out."""
    outputs = (student(to_array(Image.fromarray(picture))[None])[0, :3] for picture in pictures)
    return [np.asarray(to_picture(output)) for output in outputs]


def mixed(strength: float, pictures: list[np.ndarray], own: list[np.ndarray]) -> list[np.ndarray]:
    smoother = Smoother(strength)
    return [smoother(picture, output) for picture, output in zip(pictures, own, strict=True)]


def far(one: np.ndarray, other: np.ndarray) -> float:
    """The share of values that are more than a jump apart."""
    return float((np.abs(one.astype(int) - other) > JUMP).mean())


def psnr(one: np.ndarray, other: np.ndarray) -> float:
    return float(10 * np.log10(255**2 / np.square(one.astype(float) - other).mean()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--students", nargs="+", default=["hayao", "toon"])
    parser.add_argument("--frames", type=int, default=40)
    given = parser.parse_args()
    photo = data.astronaut() / 255
    clips = {mode: [*frames(photo, given.frames, SIZE, mode)] for mode in ("still", "pan", "walk")}
    rows = []
    for name in given.students:
        student = open_student(zoo.find(name))
        own = {mode: stylised(student, pictures) for mode, pictures in clips.items()}
        for strength in STRENGTHS:
            made = {mode: mixed(strength, clips[mode], own[mode]) for mode in clips}
            jumps = np.mean([far(a, b) for a, b in pairwise(made["still"])])
            row = [name, f"{strength:g}", f"{100 * jumps:.2f} %"]
            for mode in ("pan", "walk"):
                pairs = list(zip(made[mode], own[mode], strict=True))
                row.append(f"{100 * np.mean([far(a, b) for a, b in pairs]):.2f} %")
                row.append(
                    "" if not strength else f"{np.mean([psnr(a, b) for a, b in pairs[1:]]):.1f}"
                )
            rows.append(row)
    head = ["student", "strength", "jumps, still", "ghosts, pan", "dB", "ghosts, walk", "dB"]
    print(Table(f"{SIZE[0]}×{SIZE[1]}, {given.frames} frames", head, rows))


if __name__ == "__main__":
    main()
