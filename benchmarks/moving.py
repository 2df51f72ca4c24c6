"""Videos whose motion is known, to measure inference and stability on.

    python benchmarks/moving.py FOLDER [PHOTO] [WIDTHxHEIGHT] [FRAMES]

writes still.mp4, pan.mp4 (0.35 and 0.15 pixels a frame), zoom.mp4 (0.2 % a frame) and walk.mp4 (a
hand's sway): one photo, scikit-image's astronaut by default, with noise of 2.5 levels.
Then, for each:

    python -m distill.stylize FOLDER/pan.mp4 stability=true smooth=0.8
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
from PIL import Image
from skimage import data
from skimage.transform import SimilarityTransform, warp

NOISE = 2.5  # levels of 255, standard deviation
MODES = ("still", "pan", "zoom", "walk")


def view(photo: np.ndarray, frame: int, size: tuple[int, int], mode: str) -> np.ndarray:
    """What the camera sees, (height, width, 3) in [0, 1]."""
    height, width = photo.shape[:2]
    zoom = {"zoom": 1 - 0.002 * frame, "walk": 1 - 0.001 * frame}.get(mode, 1.0)
    scale = zoom * 0.85 * min(width / size[0], height / size[1])
    right, down = {
        "pan": (0.35 * frame - 10, 0.15 * frame),
        "walk": (0.6 * frame + 2 * np.sin(frame / 5) - 10, 1.5 * np.sin(frame / 4)),
    }.get(mode, (0.0, 0.0))
    corner = (
        width / 2 + scale * (right - size[0] / 2),
        height / 2 + scale * (down - size[1] / 2),
    )
    place = SimilarityTransform(scale=scale, translation=corner)
    return warp(photo, place, output_shape=size[::-1], order=3, mode="reflect")


def frames(photo: np.ndarray, count: int, size: tuple[int, int], mode: str) -> Iterator[np.ndarray]:
    """8-bit frames with fresh noise in each."""
    rng = np.random.default_rng(0)
    for number in range(count):
        seen = view(photo, number, size, mode) * 255
        yield (seen + rng.normal(0, NOISE, seen.shape)).clip(0, 255).round().astype(np.uint8)


def write(path: Path, pictures: Iterator[np.ndarray], size: tuple[int, int]) -> None:
    """H.264 at 25 frames a second."""
    with av.open(str(path), "w") as out:
        stream = out.add_stream("libx264", rate=25, options={"preset": "fast", "crf": "18"})
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        for picture in pictures:
            out.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        out.mux(stream.encode(None))


def main(folder: str, photo: str = "", size: str = "384x384", count: str = "30") -> None:
    sides = (int(size.split("x")[0]), int(size.split("x")[1]))
    picture = np.asarray(Image.open(photo).convert("RGB")) if photo else data.astronaut()
    Path(folder).mkdir(parents=True, exist_ok=True)
    for mode in MODES:
        write(Path(folder, f"{mode}.mp4"), frames(picture / 255, int(count), sides, mode), sides)


if __name__ == "__main__":
    main(*sys.argv[1:])
