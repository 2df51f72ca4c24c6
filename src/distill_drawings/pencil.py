"""`pencil`: lines of straight strokes over hatched tones, after Lu, Xu, Jia 2012.

The line drawing and the tone's histogram are theirs; the hatching is noise drawn out one way, which
changes the density of the graphite. `coloured` keeps the photo's colours.
"""

import math

import kornia
import torch
import torch.nn.functional as F
from torch import Tensor

from distill_drawings import abstraction as ab

DIRECTIONS = 8


class PencilDrawing(ab.Classical):
    """Photo to pencil drawing.

    `stroke` is half the length of a stroke, `lines` and `tone` the density of lines and shading.
    `hatching` is noise, which a student does not learn.
    """

    stroke: ab.Positive = 6.0
    lines: ab.Amount = 2.2
    tone: ab.Amount = 1.0
    hatching: ab.Amount = 0.13
    coloured: bool = False
    paper: ab.Colour = "#fbfaf6"

    def draw(self, photo: Tensor, unit: float) -> dict[str, Tensor]:
        smooth = ab.flattened(photo, 4 * unit, 0.003)
        light = ab.lightness(smooth)
        line = strokes(ab.blur(light, 0.5 * unit), max(round(self.stroke * unit), 1))
        line = (line / ab.quantile(line, 0.985).clamp_min(0.06)).clamp(0, 1) ** 1.6
        tone = ab.blur(light, 0.8 * unit)
        shade = -((match_histogram(tone) + ab.exposed(tone, 0.7)) / 2).clamp_min(0.05).log()
        density = self.lines * line + self.tone * shade
        noise = ab.grain(photo, 0.6 * unit, 0)
        slant = torch.tensor([1.0, -1.0], device=photo.device).view(1, 2, 1, 1) / math.sqrt(2)
        hatch = ab.along(noise, slant.expand(1, 2, *noise.shape[2:]), 7 * unit)
        mark = hatch / (hatch.std(correction=0) + 1e-6) + 0.5 * noise
        page = 0.12 + 0.88 * torch.exp(-density * (1 + self.hatching * mark).clamp_min(0))
        if self.coloured:
            lab = torch.cat([100 * page, 1.5 * kornia.color.rgb_to_lab(smooth)[:, 1:]], 1)
            page = kornia.color.lab_to_rgb(lab, clip=True)
        ink = 1 - torch.exp(-self.lines * line)
        return {"picture": ab.colour(self.paper, photo) * page, "ink": ink}


def strokes(light: Tensor, reach: int) -> Tensor:
    """Edges (N, 1, H, W), each drawn by a straight stroke in the one of eight directions that
    answers most, `reach` pixels to either side (section 3.1)."""
    edge = kornia.filters.spatial_gradient(light)[:, 0].square().sum(1, keepdim=True).sqrt()
    off = torch.arange(-reach, reach + 1, device=light.device)
    angle = (torch.arange(DIRECTIONS, device=light.device) * math.pi / DIRECTIONS).view(-1, 1, 1)
    aside = off * angle.sin() - off[:, None] * angle.cos()
    far = off * angle.cos() + off[:, None] * angle.sin()
    kernel = (1 - aside.abs()).clamp_min(0) * (far.abs() <= reach)
    kernel = (kernel / kernel.sum((1, 2), keepdim=True))[:, None]

    def answers(picture: Tensor, groups: int) -> Tensor:
        return F.conv2d(F.pad(picture, [reach] * 4, mode="replicate"), kernel, groups=groups)

    best = F.one_hot(answers(edge, 1).argmax(1), DIRECTIONS).movedim(-1, 1)
    return answers(best * edge, DIRECTIONS).sum(1, keepdim=True)


def match_histogram(light: Tensor) -> Tensor:
    """Tones (N, 1, H, W) in [0, 1] with the histogram of pencil drawings (section 3.2): 52 % of a
    Laplacian at white, 37 % even from 105 to 225, 11 % of a Gaussian at 90."""
    value = torch.arange(256.0, device=light.device)
    bright = torch.exp((value - 255) / 9) / 9
    even = ((value >= 105) & (value <= 225)) / 120
    dark = torch.exp(-(value - 90).square() / (2 * 11**2)) / (11 * math.sqrt(2 * math.pi))
    target = (0.52 * bright + 0.37 * even + 0.11 * dark).cumsum(0)
    tones = []
    for each in light * 255:
        level = each.round().long().clamp(0, 255)
        share = torch.bincount(level.flatten(), minlength=256).cumsum(0) / level.numel()
        tone = torch.searchsorted(target / target[-1], share).clamp_max(255) / 255
        low = each.long().clamp(0, 254)
        tones.append(torch.lerp(tone[low], tone[low + 1], each - low))  # no steps between levels
    return torch.stack(tones)
