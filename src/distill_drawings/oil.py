"""`oil`: brush strokes that follow the forms, and paint that shines a little.

The anisotropic Kuwahara filter (Kyprianidis, Kang, Döllner 2009; weights of Kyprianidis 2011) in
two sizes of brush, lightness in planes, warm lights and cool shadows, and a gloss: line integrals
of the picture and of a little noise are the height of the paint, lit from the upper left.
"""

import kornia
import torch
from torch import Tensor

from distill_drawings import abstraction as ab


class OilPainting(ab.Classical):
    """Photo to oil painting.

    `brush` and `detail` are the radii of the two brushes, `planes` the steps of lightness, `warmth`
    in units of Lab. `bristles` is noise, which a student does not learn; `gloss` lights it.
    """

    brush: ab.Positive = 11.0
    detail: ab.Positive = 4.5
    planes: ab.Positive = 9.0
    saturation: ab.Amount = 1.35
    warmth: ab.Amount = 10.0
    gloss: ab.Amount = 0.6
    bristles: ab.Amount = 0.8

    def draw(self, photo: Tensor, unit: float) -> dict[str, Tensor]:
        paint = ab.paint(photo, self.brush, self.detail, unit)
        light, a, b = kornia.color.rgb_to_lab(paint).split(1, 1)
        light = light / 100
        light = ab.stepped((ab.exposed(light, 0.5) + light) / 2, self.planes, 3.0)
        strokes, _ = ab.flow(ab.structure(paint, 10 * unit))  # everywhere, also where all is even
        marks = ab.along(ab.grain(photo, 0.8 * unit, 0).expand_as(light), strokes, 7 * unit)
        marks = marks / (marks.std((2, 3), correction=0, keepdim=True) + 1e-6)
        height = ab.along(light, strokes, 3 * unit) + 0.015 * self.bristles * marks
        slope = kornia.filters.spatial_gradient(height)[:, 0].sum(1, keepdim=True)
        light = light + self.gloss * slope.clamp(-0.12, 0.12)
        warm = self.warmth * (light - 0.5)
        a, b = self.saturation * a + 0.4 * warm, self.saturation * b + 2 * warm
        lab = torch.cat([100 * light, a, b], 1)
        return {"picture": kornia.color.lab_to_rgb(lab, clip=True)}
