"""`ink`: a brush drawing in black on white.

Coherent lines (Kang, Lee, Chui 2007) and black shadows by the extended difference of Gaussians of
Winnemöller, Kyprianidis, Olsen 2012: a large p makes lines of changing width, as a brush does.
"""

from torch import Tensor

from distill_drawings import abstraction as ab


class InkDrawing(ab.Classical):
    """Photo to ink drawing.

    Lines are `width` wide and the more, the higher `lines`; tones below `black` become areas, of
    the photo's or, by the share `local`, of its parts.
    """

    width: ab.Positive = 0.9
    lines: ab.Positive = 16.0
    black: ab.Amount = 0.38
    local: ab.Amount = 0.4
    paper: ab.Colour = "#fdfbf5"
    ink: ab.Colour = "#15131a"

    def draw(self, photo: Tensor, unit: float) -> dict[str, Tensor]:
        sigma = self.width * unit
        light = ab.exposed(ab.lightness(ab.flattened(photo, 4 * unit, 0.002)), 0.55)
        light = light - self.local * (ab.blur(light, 30 * unit) - 0.6)
        tangent, _ = ab.flow(ab.structure(ab.blur(photo, 0.7 * sigma), 2.5 * sigma))
        paper_share = ab.pen(light, tangent, sigma, self.lines, self.black)
        ink, paper = ab.colour(self.ink, photo), ab.colour(self.paper, photo)
        return {"picture": ink + (paper - ink) * paper_share, "ink": 1 - paper_share}
