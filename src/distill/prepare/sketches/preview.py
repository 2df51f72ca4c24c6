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
    size = steps.square.shape[-1]
    edges = 1 - torch.from_numpy(steps.found).float().expand(3, -1, -1)
    shown = over_white(steps.target[None])[0]
    return [
        _titled(_fitted(steps.whole, size), name),
        _dotted(steps),
        _over_tiles(shown, steps.mask),
        edges,
        steps.outline,
        shown * steps.outline,
    ]


def _fitted(photo: Tensor, size: int) -> Tensor:
    """The whole photo in a white square."""
    height, width = photo.shape[-2:]
    long, short = max(width, height), min(width, height)
    return cut(photo, in_the_middle(width, height, long / short), size, 1)


def _titled(picture: Tensor, name: str) -> Tensor:
    page = to_image(picture)
    draw = ImageDraw.Draw(page)
    draw.rectangle((0, page.height - 13, page.width, page.height), "white")
    draw.text((2, page.height - 13), name.encode("latin-1", "replace").decode("latin-1"), "black")
    return to_tensor(page)


def _dotted(steps: Steps) -> Tensor:
    page = to_image(steps.square)
    draw = ImageDraw.Draw(page)
    for number, (x, y) in enumerate(steps.spots):
        colour = "red" if number < 3 else "yellow"
        draw.ellipse((x - DOT, y - DOT, x + DOT, y + DOT), colour, "black")
    return to_tensor(page)


def _over_tiles(shown: Tensor, mask: Tensor) -> Tensor:
    """A picture over white, with grey tiles where the mask leaves nothing."""
    at = torch.arange(shown.shape[-1]) // TILE
    tiles = 1 - 0.2 * ((at[:, None] + at) % 2)
    return shown * mask.clamp(min=0) + shown * tiles * (1 - mask)
