"""Views of one photo and augmentation of pairs; all randomness is from a seed and a position."""

import hashlib
import io
from collections.abc import Sequence
from copy import deepcopy
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image, ImageEnhance
from torch import Tensor

from distill.config.settings.training import Pad
from distill.data.photos import centre_box, centre_square


def rng_for(*parts: object) -> np.random.Generator:
    """A generator that depends on the parts alone, whatever process or order asks."""
    text = ":".join(str(part) for part in parts)
    digest = hashlib.sha256(text.encode(errors="surrogateescape")).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big"))


def random_square(
    image: Image.Image, size: int, crop: float, rng: np.random.Generator
) -> Image.Image:
    """A random square of 45 to 100 % of the centre square's side, at size×size, perhaps mirrored.

    With crop < 1 it stays within that share of the picture: the rim is not wanted.
    """
    return _cut(image, size, *_random_box(image.size, crop, rng))


def _random_box(
    size: tuple[int, int], crop: float, rng: np.random.Generator
) -> tuple[tuple[float, float, float, float], bool]:
    """Such a square of a picture of this width and height, and whether it is mirrored."""
    width, height = size
    side = min(size) * crop * rng.uniform(0.45, 1.0)
    rim_x, rim_y = width * (1 - crop) / 2, height * (1 - crop) / 2
    left = rng.uniform(rim_x, width - rim_x - side)
    top = rng.uniform(rim_y, height - rim_y - side)
    return (left, top, left + side, top + side), rng.random() < 0.5


def _cut(
    image: Image.Image, size: int, box: tuple[float, float, float, float], mirrored: bool
) -> Image.Image:
    square = image.resize((size, size), Image.Resampling.LANCZOS, box=box)
    return square.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else square


def recolour(image: Image.Image, strength: float, rng: np.random.Generator) -> Image.Image:
    """Brightness, contrast and saturation each times 1 ± strength; transparency is kept.

    Only ahead of a teacher, or on both sides of a pair alike.
    """
    for enhance in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
        image = enhance(image).enhance(1 + strength * rng.uniform(-1, 1))
    return image


def dim(image: Image.Image, strength: float, rng: np.random.Generator) -> Image.Image:
    """Down to a quarter of the light, at a gamma of 2.2."""
    return ImageEnhance.Brightness(image).enhance((1 - 0.75 * strength) ** (1 / 2.2))


def noisy(image: Image.Image, strength: float, rng: np.random.Generator) -> Image.Image:
    """Gaussian noise of each value, a standard deviation of up to 16 levels."""
    values = np.asarray(image) + 16 * strength * rng.standard_normal((*image.size[::-1], 3))
    return Image.fromarray(values.round().clip(0, 255).astype(np.uint8))


def shaken(image: Image.Image, strength: float, rng: np.random.Generator) -> Image.Image:
    """Moved in one direction during the exposure, by up to 4 % of the short side."""
    way = np.array([np.sin(angle := rng.uniform(0, np.pi)), np.cos(angle)])
    steps = round(0.04 * strength * min(image.size)) + 1
    places = np.rint(np.outer(np.arange(steps) - (steps - 1) / 2, way)).astype(int) + steps
    padded = np.pad(np.asarray(image, np.float32), ((steps, steps), (steps, steps), (0, 0)), "edge")
    total = np.zeros((image.height, image.width, 3), np.float32)
    for y, x in places:
        total += padded[y : y + image.height, x : x + image.width]
    return Image.fromarray((total / steps).round().astype(np.uint8))


def compressed(image: Image.Image, strength: float, rng: np.random.Generator) -> Image.Image:
    """As JPEG, of a quality down to 15."""
    content = io.BytesIO()
    image.save(content, "JPEG", quality=round(90 - 75 * strength))
    return Image.open(content).convert("RGB")


# What cameras do to an RGB picture, by a strength in [0, 1]; none of it moves what is to be seen.
CAMERA = {"dim light": dim, "noise": noisy, "motion blur": shaken, "JPEG": compressed}


def as_camera(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """With one of `CAMERA`, of any strength."""
    corrupt = [*CAMERA.values()][rng.integers(len(CAMERA))]
    return corrupt(image, rng.uniform(0, 1), rng)


def as_square(image: Image.Image, size: int, pad: Pad | None) -> Image.Image:
    """The picture at size×size (Lanczos): its centre square, or all of it with `pad` around it.

    White and black are see-through where the picture can be: nothing is shown there. `edge`
    repeats the outermost pixels.
    """
    if pad is None or image.width == image.height:
        return image if image.size == (size, size) else centre_square(image, size)
    scale = size / max(image.size)
    width, height = (max(1, round(side * scale)) for side in image.size)
    small = image.resize((width, height), Image.Resampling.LANCZOS)
    left, top = (size - width) // 2, (size - height) // 2
    if pad == "edge":
        rows, columns = (top, size - height - top), (left, size - width - left)
        edges = (rows, columns, (0, 0))[: np.asarray(small).ndim]
        return Image.fromarray(np.pad(np.asarray(small), edges, "edge"))
    around = {"white": (255, 255, 255), "black": (0, 0, 0)}[pad]
    square = Image.new(image.mode, (size, size), (*around, 0)[: len(image.getbands())])
    square.paste(small, (left, top))
    return square


def views(
    pictures: Sequence[Image.Image],
    number: int,
    size: int,
    crop: float,
    colour: float,
    rng: np.random.Generator,
) -> list[Image.Image]:
    """The same view of several pictures that show one thing, each as large as it may be.

    View 0 is the plain centre square; every other one a random square with changed colours, the
    same share of each picture, its colours changed alike.
    """
    width, height = pictures[0].size
    box, mirrored = centre_box((width, height), crop), False
    if number:
        box, mirrored = _random_box((width, height), crop, rng)
    squares = []
    for picture in pictures:
        x, y = picture.width / width, picture.height / height
        right, bottom = min(box[2] * x, picture.width), min(box[3] * y, picture.height)
        squares.append(_cut(picture, size, (box[0] * x, box[1] * y, right, bottom), mirrored))
    return [recolour(each, colour, deepcopy(rng)) for each in squares] if number else squares


class Cut(NamedTuple):
    """A square of a picture (H, W, C) by its top, left and side, perhaps mirrored; `side` None is
    all of it."""

    top: int
    left: int
    side: int | None
    mirrored: bool

    def of(self, picture: Tensor) -> Tensor:
        top, left, side, _ = self
        if side is not None:
            picture = picture[top : top + side, left : left + side]
        return self.turned(picture).contiguous()

    def turned(self, picture: Tensor) -> Tensor:
        """All of a picture, mirrored where the square is."""
        return torch.flip(picture, (1,)) if self.mirrored else picture


def random_cut(shape: Sequence[int], size: int | None, flip: bool, rng: np.random.Generator) -> Cut:
    """A random square of `size` of a picture of this height and width, and a coin for mirroring.

    A smaller picture, and one of this very size, is not cut.
    """
    height, width = shape[:2]
    top, left, side = 0, 0, None
    if size is not None and size <= min(height, width) and (height, width) != (size, size):
        side = size
        top, left = int(rng.integers(height - size + 1)), int(rng.integers(width - size + 1))
    return Cut(top, left, side, bool(flip and rng.random() < 0.5))


def zoomed_crop(
    pictures: Sequence[Image.Image], size: int, zoom: float, rng: np.random.Generator
) -> list[Image.Image]:
    """One random square of all pictures, 1 / (1 + zoom) to 1 + zoom times as large, at size×size.

    Smaller is as likely as larger. Where a picture has too few pixels for a smaller factor
    its whole short side is taken.
    """
    width, height = pictures[0].size
    factor = (1 + zoom) ** rng.uniform(-1, 1)
    side = min(size / factor, width, height)
    left, top = rng.uniform(0, width - side), rng.uniform(0, height - side)
    box = (left, top, left + side, top + side)
    return [_cut(picture, size, box, mirrored=False) for picture in pictures]
