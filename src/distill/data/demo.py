"""The colour photographs that scikit-image's wheel carries: a photo set without a download."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from distill.data.photos import Photo
from distill.errors import DistillError

TRAIN = ("chelsea.png", "coffee.png", "rocket.jpg", "motorcycle_left.png", "motorcycle_right.png")
VAL = ("astronaut.png",)


def demo_photos() -> list[Photo]:
    """Five photographs to train on and the astronaut, held out."""
    spec = find_spec("skimage")
    if spec is None or spec.origin is None:
        raise DistillError("data=demo: needs scikit-image; pip install scikit-image")
    folder = Path(spec.origin).parent / "data"
    train = [Photo(folder / name, name, "train") for name in TRAIN]
    val = [Photo(folder / name, name, "val") for name in VAL]
    return [p for p in train + val if p.path.is_file()]
