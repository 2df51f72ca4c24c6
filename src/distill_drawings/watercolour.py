"""`watercolour`: washes with dark edges on white paper.

After Bousseau, Kaplan, Thollot, Sillion 2006: the photo is abstracted, then the density d of the
pigment changes its colour C to C − (C − C²)(d − 1); it gathers at the inner edge of a wash (as in
Montesdeoca et al. 2017), in pools of slow noise, and in the grain of the paper.
"""

import kornia
import torch
from torch import Tensor

from distill_drawings import abstraction as ab


class Watercolour(ab.Classical):
    """Photo to watercolour.

    `brush` is the radius of the wide brush, `washes` the steps of lightness, `edges` how much
    darker a wash ends. `pools` and `grain` are noise, which a student does not learn.
    """

    brush: ab.Positive = 8.0
    washes: ab.Positive = 5.0
    edges: ab.Amount = 5.0
    saturation: ab.Amount = 1.5
    pools: ab.Amount = 0.12
    grain: ab.Amount = 0.03
    paper: ab.Colour = "#fbf8f0"

    def draw(self, photo: Tensor, unit: float) -> dict[str, Tensor]:
        paint = ab.paint(photo, self.brush, 0.4 * self.brush, unit)
        lab = kornia.color.rgb_to_lab(paint)
        light = ab.exposed(lab[:, :1] / 100, 0.62, high=0.985)
        light = 0.2 + 0.8 * (0.7 * ab.stepped(light, self.washes, 5.0) + 0.3 * light)
        pigment = 1 - ((light - 0.9) / 0.1).clamp(0, 1)  # the lightest is paper
        lab = torch.cat([100 * light, self.saturation * pigment * lab[:, 1:]], 1)
        wash = kornia.color.lab_to_rgb(lab, clip=True).clamp_min(0.02)
        edge = ab.blur(light, 2.5 * unit) - ab.blur(light, 0.7 * unit)
        slow = ab.grain(photo, 14 * unit, 1) + 0.6 * ab.grain(photo, 5 * unit, 2)
        density = self.edges * edge.clamp(-0.1, 0.25) + self.pools * slow
        density = density + self.grain * ab.grain(photo, 0.7, 3)
        density = (wash - (wash - wash.square()) * density).clamp(0, 1)
        return {"picture": ab.colour(self.paper, photo) * density}
