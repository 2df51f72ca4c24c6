"""Faces cropped as the training photos were, and their stylised pictures pasted back.

Detect, extend the box, crop, stylise, patch back: as the paper's authors did for a filter on faces.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from PIL import Image

from distill.core import weights
from distill.core.errors import needed
from distill.data.faces import YUNET, BlazeFace, Box, FindFaces, YuNet, cascade, lbp_faces

Detector = Literal["lbp", "yunet", "blazeface"]
Blend = Literal["feathered", "poisson"]

# A box's height as a share of the crop that students are trained on (the centre 80 % of LFW's
# photos): the median over 154 such photos, its centre the crop's within 0.02. lbp: of the 144
# boxes that it saw, 0.53 to 0.59 for half of them. yunet: of 154, 0.61 to 0.67.
SHARE: dict[Detector, float] = {"lbp": 0.565, "yunet": 0.63, "blazeface": 0.535}
DETECTED_AT = 1024  # pixels of the long side: faces are found as well, and as fast in large photos
SOFT = 0.6  # of the way from the middle to the square's side nothing fades


class Square(NamedTuple):
    """A square of pixels that may reach beyond the picture; `opacity` is that of a paste."""

    left: int
    top: int
    side: int
    opacity: float = 1.0


def finder(detector: Detector) -> FindFaces:
    """The detector of that name. Raises DistillError where what it needs cannot be had."""
    if detector == "lbp":
        cascade()
        return lbp_faces
    return YuNet(weights.find(YUNET)) if detector == "yunet" else BlazeFace()


def squares(
    photo: Image.Image, find: FindFaces, detector: Detector, everyone: bool = False
) -> list[Square]:
    """The squares around the largest face of an RGB(A) photo, or around all, the largest first."""
    scale = max(1.0, max(photo.size) / DETECTED_AT)
    size = (max(1, round(photo.width / scale)), max(1, round(photo.height / scale)))
    small = photo.convert("RGB").resize(size, Image.Resampling.BILINEAR)
    faces = find(np.asarray(small))
    boxes = [square(face.box, SHARE[detector], scale) for face in faces]
    return boxes if everyone else boxes[:1]


def square(box: Box, share: float, scale: float = 1.0) -> Square:
    """The square of which a box is that share of the height, around the box's middle."""
    side = max(1, round(box.height / share * scale))
    middle = [(box.left + box.width / 2) * scale, (box.top + box.height / 2) * scale]
    left, top = (round(at - side / 2) for at in middle)
    return Square(left, top, side)


def crop(photo: Image.Image, part: Square, side: int | None = None) -> Image.Image:
    """A square as a picture of its own, `side` pixels wide, as wide as it is where that is None.

    It may reach beyond the photo: there the photo is mirrored.
    """
    left, top, right, bottom = (*part[:2], part.left + part.side, part.top + part.side)
    if left >= 0 and top >= 0 and right <= photo.width and bottom <= photo.height:
        face = photo.crop((left, top, right, bottom))
    else:
        across = _mirrored(left, part.side, photo.width)
        down = _mirrored(top, part.side, photo.height)
        face = Image.fromarray(np.asarray(photo)[np.ix_(down, across)])
    return face if side is None else face.resize((side, side), Image.Resampling.LANCZOS)


def paste(
    photo: Image.Image,
    parts: Sequence[Square],
    stylise: Callable[[Image.Image], Image.Image],
    blend: Blend = "feathered",
) -> Image.Image:
    """A photo in which those squares are stylised, each fading into what is around it.

    The largest comes last, over the others. poisson: in its surroundings' colours, see `seamless`.
    """
    page = photo.copy()
    for part in reversed(parts):
        face = crop(photo, part)
        stylised = stylise(face).convert(photo.mode)
        if blend == "poisson":
            stylised = seamless(stylised, face)
        mask = disc(part.side).point(lambda level, part=part: round(part.opacity * level))
        page.paste(stylised, (part.left, part.top), mask)
    return page


def seamless(stylised: Image.Image, photo: Image.Image) -> Image.Image:
    """The picture, RGB(A), that has the photo's colours at its sides and `stylised`'s gradients.

    Poisson blending (Perez, Gangnet and Blake 2003, equation 3): what is added has the photo's
    difference at the sides, and is inside the mean of its four neighbours; solved exactly, by sine
    transforms. Raises DistillError without SciPy.
    """
    with needed("blend=poisson: needs SciPy", "pip install scipy"):
        from scipy.fft import dstn, idstn
    result = np.array(stylised, np.float32)
    correction = np.asarray(photo, np.float32)[..., :3] - result[..., :3]
    correction[1:-1, 1:-1] = 0
    sides = (
        correction[:-2, 1:-1] + correction[2:, 1:-1] + correction[1:-1, :-2] + correction[1:-1, 2:]
    )
    down, across = (2 - 2 * np.cos(np.pi * np.arange(1, n + 1) / (n + 1)) for n in sides.shape[:2])
    waves = dstn(sides, 1, axes=(0, 1)) / (down[:, None] + across)[..., None]
    correction[1:-1, 1:-1] = idstn(waves, 1, axes=(0, 1))
    result[..., :3] += correction
    return Image.fromarray(result.round().clip(0, 255).astype(np.uint8))


def disc(side: int) -> Image.Image:
    """How much of a square shows, 0 to 255: a disc with a soft rim that ends at the sides."""
    at = (np.arange(side) + 0.5) / side * 2 - 1
    share = np.clip((1 - np.hypot(at[:, None], at)) / (1 - SOFT), 0, 1)
    return Image.fromarray((255 * (share * share * (3 - 2 * share))).round().astype(np.uint8))


def _mirrored(start: int, count: int, length: int) -> np.ndarray:
    """Pixel numbers from `start` on, with those beyond a side of that length mirrored at it."""
    at = np.arange(start, start + count) % (2 * length)
    return np.minimum(at, 2 * length - 1 - at)
