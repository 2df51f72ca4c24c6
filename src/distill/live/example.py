"""The picture that stands for the camera where there is none, and each style's thumbnail."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from PIL import Image

from distill.core.errors import DistillError
from distill.core.images import over_white, to_image, to_tensor
from distill.inference.onnx_student import Painter

BUST = (40, 0, 440, 400)  # left, top, right, bottom of the astronaut's head and shoulders
FACE = (96, 0, 352, 256)
SIDE = 256  # that it is drawn at where any goes
THUMBNAIL = 160  # pixels
JPEG = {"quality": 88, "optimize": True}


def astronaut() -> Image.Image:
    """The photograph that scikit-image carries, 512 × 512 (NASA, public domain)."""
    spec = find_spec("skimage")
    if spec is None or spec.origin is None:
        raise DistillError("lens: needs scikit-image; pip install scikit-image")
    return Image.open(Path(spec.origin).parent / "data" / "astronaut.png").convert("RGB")


def save_example(path: Path) -> None:
    """A small JPEG of head and shoulders."""
    astronaut().crop(BUST).save(path, "JPEG", **JPEG)


def save_thumbnail(painter: Painter, path: Path) -> None:
    """The astronaut's face as a student draws it, small."""
    height, width = painter.fixed or (SIDE, SIDE)
    face = astronaut().crop(FACE).resize((width, height), Image.Resampling.LANCZOS)
    drawn = to_image(over_white(painter(to_tensor(face)[None]))[0])
    drawn.resize((THUMBNAIL, THUMBNAIL), Image.Resampling.LANCZOS).save(path, "JPEG", **JPEG)
