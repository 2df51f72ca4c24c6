"""Colours of a large output from the size that the network learnt at.

A student learns what a whole picture does to its colours, the teacher's normalisation above all, by
what its features see at that size. In a larger picture they see a part of it, and the output comes
out too light or too dark, though its lines are right. So what is wide in the output is taken from
the output at the size it learnt at: a Laplacian pyramid of two levels (Burt and Adelson 1983).
"""

from __future__ import annotations

import numpy as np
from PIL import Image

CELL = 16  # pixels of the small output: what is wider is taken from it
STRIP = 256  # rows at once: the differences are floats, four times the picture
BOX, BICUBIC = Image.Resampling.BOX, Image.Resampling.BICUBIC


def recolour(stylised: Image.Image, small: Image.Image) -> Image.Image:
    """`stylised`, RGB or RGBA, with the wide parts of `small`, the output for a smaller picture.

    Both show the same, all of it. Transparency is that of `stylised`.
    """
    coarse = [max(1, round(side / CELL)) for side in small.size]
    shrunk = stylised.resize(small.size, BOX)
    differences = [
        Image.fromarray(np.asarray(wanted, np.float32) - np.asarray(got, np.float32)).resize(
            (coarse[0], coarse[1]), BOX
        )
        for wanted, got in zip(small.split()[:3], shrunk.split()[:3], strict=True)
    ]
    full = stylised.copy()
    for top in range(0, full.height, STRIP):
        bottom = min(top + STRIP, full.height)
        rows = np.array(full.crop((0, top, full.width, bottom)))
        box = (0, top * coarse[1] / full.height, coarse[0], bottom * coarse[1] / full.height)
        for channel, difference in enumerate(differences):
            wide = np.asarray(difference.resize((full.width, bottom - top), BICUBIC, box=box))
            rows[..., channel] = (rows[..., channel] + wide).round().clip(0, 255)
        full.paste(Image.fromarray(rows), (0, top))
    return full
