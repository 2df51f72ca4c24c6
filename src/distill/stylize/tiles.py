"""Pictures of any size in tiles: the memory of one, and no seams.

An output pixel of a convolutional network depends on inputs within its receptive field only. Where
a tile overlaps its neighbours by that much, its output there is that of the whole picture: the
tiles are equal where they meet, and the blend across only hides what a wider network leaves.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from PIL import Image

from distill.core.arrays import to_array, to_picture
from distill.stylize.onnx_student import STRIDE, ImageModel

TILE = 1280  # pixels a side that the network takes at once: four times the largest overlap
BLEND = 32  # pixels from one tile to the next
MOST = 320  # pixels of overlap to a side at most, for a network that depends on the whole picture


def stylise_tiled(
    picture: Image.Image, model: ImageModel, summary: np.ndarray | None = None
) -> Image.Image:
    """An RGB picture stylised at its own size, whose sides divide by 32; any size where the network
    is of one size, and then at least as large. `summary` is of the whole picture, see ImageModel.
    """
    height, width = model.fixed or (TILE, TILE)
    rows = _spans(picture.height, height, margin(model, height))
    columns = _spans(picture.width, width, margin(model, width))
    stylised = Image.new("RGB" if model.channels == 3 else "RGBA", picture.size)
    for top, bottom, down in rows:
        for left, right, across in columns:
            tile = to_array(picture.crop((left, top, right, bottom)))
            share = Image.fromarray((255 * down[:, None] * across).round().astype(np.uint8))
            stylised.paste(to_picture(model(tile[None], summary)[0]), (left, top), share)
    return stylised


def margin(model: ImageModel, side: int) -> int:
    """Pixels on each side of a tile that its neighbour takes over or is blended with."""
    # One cell of the deepest features more: a border pads every layer, which a change does not.
    wanted = -(-(model.reach + STRIDE + BLEND // 2) // STRIDE) * STRIDE
    return min(wanted, MOST, side // 4 // STRIDE * STRIDE or side // 4)


def _spans(length: int, tile: int, margin: int) -> list[tuple[int, int, np.ndarray]]:
    """Start and end of every tile along one side, and the weight of each of its pixels, [0, 1].

    A tile is put over those before it: it fades in around the middle of what it shares with the one
    before, and ends where the next one has taken over, since its rim is not to be seen.
    """
    if length <= tile:
        return [(0, length, np.ones(length))]
    last = length - tile
    starts = [*range(0, last, tile - 2 * margin), last]
    middles = [-BLEND, *((one + tile + two) / 2 for one, two in pairwise(starts)), length + BLEND]
    spans = []
    for i, start in enumerate(starts):
        pixels = np.arange(start, start + tile) + 0.5
        share = np.clip((pixels - middles[i]) / BLEND + 0.5, 0, 1)
        share[pixels > middles[i + 1] + BLEND / 2] = 0
        spans.append((start, start + tile, share))
    return spans
