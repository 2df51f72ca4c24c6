"""`comic`: flat colours in few tones between lines of ink.

Regions become flat by the anisotropic Kuwahara filter, twice (Kyprianidis, Kang, Döllner 2009): it
moves towards the modes of the colours as mean shift does. Lines are flow-based XDoG (Winnemöller,
Kyprianidis, Olsen 2012) of the photo without its fine shading, so faces get no beards.
"""

import kornia
import torch
from torch import Tensor

from distill_drawings import abstraction as ab


class ComicDrawing(ab.Classical):
    """Photo to comic.

    Lines are `width` wide and the more, the higher `lines`; tones below `black` become ink. `brush`
    is the radius within which colours become one, `tones` the steps of lightness.
    """

    width: ab.Positive = 1.1
    lines: ab.Positive = 18.0
    black: ab.Amount = 0.26
    brush: ab.Positive = 5.0
    tones: ab.Positive = 5.0
    saturation: ab.Amount = 1.5

    def draw(self, photo: Tensor, unit: float) -> dict[str, Tensor]:
        sigma = self.width * unit
        tangent, anisotropy = ab.flow(ab.structure(ab.blur(photo, 0.8 * unit), 2.5 * unit))
        even = ab.flattened(photo, 4 * unit, 0.0025)
        flat = even
        for _ in range(2):
            flat = ab.kuwahara(flat, tangent, anisotropy, self.brush * unit)
        lab = kornia.color.rgb_to_lab(flat)
        light = ab.stepped(ab.exposed(lab[:, :1] / 100, 0.6), self.tones, 12.0)
        lab = torch.cat([100 * (0.12 + 0.88 * light), self.saturation * lab[:, 1:]], 1)
        paint = ab.blur(kornia.color.lab_to_rgb(lab, clip=True), 0.5)
        light = ab.exposed(ab.lightness(even), 0.6)
        light = light - 0.6 * (ab.blur(light, 30 * unit) - 0.6)  # lines in shadows and lights too
        paper = ab.pen(light, tangent, sigma, self.lines, self.black)
        return {"picture": paint * paper, "ink": 1 - paper}
