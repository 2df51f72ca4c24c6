"""`neon`: glowing tubes in the photo's hues along its edges, at night.

Lines are flow-based XDoG (Kang, Lee, Chui 2007; Winnemöller, Kyprianidis, Olsen 2012) of lightness
normalised in its surroundings, so that faint edges glow too; light adds up as on film, 1 − exp(−x).
"""

import kornia
import torch
from torch import Tensor

from distill_drawings import abstraction as ab


class NeonSign(ab.Classical):
    """Photo to neon sign.

    Tubes are `width` wide and the more, the higher `lines`; `glow` is their light on what is
    around, `scene` what is seen of the photo.
    """

    width: ab.Positive = 1.2
    lines: ab.Positive = 14.0
    glow: ab.Amount = 1.0
    scene: ab.Amount = 0.16
    night: ab.Colour = "#0a0618"

    def draw(self, photo: Tensor, unit: float) -> dict[str, Tensor]:
        sigma = self.width * unit
        smooth = ab.flattened(photo, 4 * unit, 0.002)
        light = ab.exposed(ab.lightness(smooth), 0.6)
        off = light - ab.blur(light, 10 * unit)
        spread = ab.blur(off.square(), 16 * unit).sqrt()
        tangent, _ = ab.flow(ab.structure(ab.blur(photo, 0.7 * sigma), 3 * sigma))
        tube = 1 - ab.pen(0.6 + 0.18 * off / (spread + 0.08), tangent, sigma, self.lines, 0.3)
        # Hues at full strength; what is grey turns violet.
        hue = kornia.color.rgb_to_lab(ab.blur(smooth, 4 * unit))[:, 1:]
        hue = hue + torch.tensor([8.0, -12.0], device=photo.device).view(1, 2, 1, 1)
        hue = 85 * hue / (hue.norm(dim=1, keepdim=True) + 3)
        colour = kornia.color.lab_to_rgb(torch.cat([torch.full_like(light, 68), hue], 1), clip=True)
        lit = tube * colour
        around = 1.6 * ab.blur(lit, 3 * unit) + 1.8 * ab.blur(lit, 12 * unit)
        shine = 0.9 * lit + 0.25 * ab.blur(tube, 0.6 * unit) + self.glow * around
        night = ab.colour(self.night, photo) + self.scene * light * colour
        return {"picture": 1 - (1 - night) * torch.exp(-1.3 * shine), "ink": tube}
