"""Off-centre views: held-out photos shifted, zoomed and cut at random, each drawn by the teacher.

A student may know one crop of one kind of photo by heart: 30 dB there, and 5 dB less on the same
faces a few pixels further on. So the teacher draws what the set does not hold.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from distill.core.arrays import save_png
from distill.core.images import to_float, to_image, to_pixels, to_uint8
from distill.core.progress import bar
from distill.data.augment import rng_for
from distill.data.photos import BadPhoto, read_photo
from distill.evaluation.fidelity.heldout_set import ALL, FidelitySet, Indices
from distill.evaluation.heldout import infer
from distill.models.teachers.teacher import Teacher

SHIFTS = (1, 2, 4, 8, 16)  # pixels
ZOOMS = (1.1, 1.25)
CUT = (0.6, 0.95)  # side of a random crop, as a share of the photo's
KINDS = (
    *(f"shift {by} px" for by in SHIFTS),
    *(f"zoom {by:g}" for by in ZOOMS),
    "random crop",
)
WAYS = ((0, 1), (1, 0), (0, -1), (-1, 0))  # down and right; photos take them in turn


@dataclass(frozen=True)
class Views:
    """uint8 (m, len(KINDS), 3, S, S): of the photos `at` in the set, and the teacher's of them."""

    at: Indices
    photo: Tensor
    teacher: Tensor


def views_of(photo: Tensor, number: int, name: str) -> Tensor:
    """The views of a uint8 (3, S, S) in the order of KINDS, uint8 (len(KINDS), 3, S, S).

    `number` decides which way it is shifted, `name` which random crop is taken. What a shift brings
    in is the photo mirrored at its border.
    """
    size = photo.shape[-1]
    down, right = WAYS[number % len(WAYS)]
    values = to_float(photo)[None]
    most = max(SHIFTS)
    wide = F.pad(values, (most,) * 4, mode="reflect")
    made = []
    for by in SHIFTS:
        top, left = most - by * down, most - by * right
        made.append(wide[..., top : top + size, left : left + size])
    for zoom in ZOOMS:
        side = round(size / zoom)
        made.append(_cut(values, side, (size - side) // 2, (size - side) // 2))
    rng = rng_for("view", name)
    side = round(size * rng.uniform(*CUT))
    top, left = rng.integers(size - side + 1, size=2).tolist()
    made.append(_cut(values, side, top, left))
    return to_uint8(torch.cat(made))


def _cut(values: Tensor, side: int, top: int, left: int) -> Tensor:
    """A square of (1, 3, S, S), brought to the size of the whole by bicubic interpolation."""
    square = values[..., top : top + side, left : left + side]
    return F.interpolate(square, values.shape[-1], mode="bicubic", antialias=True)


def drawn(held: FidelitySet, count: int, teacher: Teacher, kept: Path) -> Views:
    """Views of the first `count` photos of each folder.

    The teacher's pictures are kept in the folder `kept`, by teacher and view, and drawn once.
    """
    at = first_of_each(held, count)
    photo = torch.stack([views_of(held.photo[i], n, held.files[i]) for n, i in enumerate(at)])
    mark = teacher.fingerprint()
    with bar(len(at), "photo", "views by the teacher", leave=False) as progress:
        pictures = []
        for each in photo:
            pictures.append(_drawn(each, teacher, kept / f"{mark}-{_hash(each)}.png"))
            progress.update()
    return Views(at, photo, torch.stack(pictures))


def first_of_each(held: FidelitySet, count: int) -> Indices:
    """The first pictures of every folder, `count` of each."""
    subsets = held.subsets()
    folders = [at for name, at in subsets.items() if name != ALL] or [subsets[ALL]]
    return np.sort(np.concatenate([at[:count] for at in folders]))


def _drawn(photo: Tensor, teacher: Teacher, file: Path) -> Tensor:
    """The teacher's pictures, from a PNG file that has them side by side, where that is whole."""
    count, _, height, width = photo.shape
    if file.is_file():
        try:
            strip = to_pixels(read_photo(file)).permute(2, 0, 1)
            if strip.shape == (3, height, count * width):
                return torch.stack(strip.split(width, 2))
        except BadPhoto:  # drawn anew
            pass
    output = infer(teacher, photo, 1, "teacher")
    file.parent.mkdir(parents=True, exist_ok=True)
    save_png(to_image(to_float(torch.cat(list(output), 2))), file)
    return output


def _hash(photo: Tensor) -> str:
    pixels = np.ascontiguousarray(photo.numpy())
    return hashlib.sha256(str(pixels.shape).encode() + pixels.tobytes()).hexdigest()[:16]
