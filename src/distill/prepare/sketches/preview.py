"""A contact sheet of every step of some photos, to see whether the settings fit."""

from __future__ import annotations

import torch
from PIL import Image, ImageDraw
from torch import Tensor

from distill.core.arrays import over_white
from distill.core.images import sheet, to_image, to_tensor
from distill.prepare.sketches.framing import cut, in_the_middle
from distill.prepare.sketches.sketcher import Steps

TITLES = ("photo", "square, points", "cut out", "all edges", "outline (A)", "A on B")
DOT = 3  # radius of a point in pixels
TILE = 16  # side of the squares behind what is transparent


def preview(rows: list[tuple[str, Steps]]) -> Image.Image:
    """A row of steps for each (name, steps), under titles; the name is on its first picture."""
    return sheet([_row(name, steps) for name, steps in rows], TITLES)


def _row(name: str, steps: Steps) -> list[Tensor]:
    height, width = steps.whole.shape[-2:]
    square = in_the_middle(width, height, max(width, height) / min(width, height))
    photo = to_image(cut(steps.whole, square, steps.square.shape[-1], 1))
    draw = ImageDraw.Draw(photo)
    draw.rectangle((0, photo.height - 13, photo.width, photo.height), "white")
    draw.text((2, photo.height - 13), name.encode("latin-1", "replace").decode("latin-1"), "black")
    dotted = to_image(steps.square)
    draw = ImageDraw.Draw(dotted)
    for number, (x, y) in enumerate(steps.spots):
        colour = "red" if number < 3 else "yellow"
        draw.ellipse((x - DOT, y - DOT, x + DOT, y + DOT), colour, "black")
    shown, mask = over_white(steps.target[None])[0], steps.mask
    at = torch.arange(shown.shape[-1]) // TILE
    tiles = 1 - 0.2 * ((at[:, None] + at) % 2)  # grey ones, where the mask leaves nothing
    return [
        to_tensor(photo),
        to_tensor(dotted),
        shown * mask.clamp(min=0) + shown * tiles * (1 - mask),
        1 - torch.from_numpy(steps.found).float().expand(3, -1, -1),
        steps.outline,
        shown * steps.outline,
    ]
