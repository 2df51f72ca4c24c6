"""`toon`, the embedded default: a cartoon made of classical image processing, without weights.

Three steps, each a module of its own: smooth flat regions but keep edges (iterated bilateral
filter, Tomasi & Manduchi 1998), quantise the lightness softly and lift the colours (Winnemöller et
al. 2006), put ink where an extended difference of Gaussians says
line (Winnemöller et al. 2012, XDoG).
"""

import kornia
import torch
from torch import Tensor, nn

from distill.models.teachers.teacher import Teacher


class Smooth(nn.Module):
    """Flat regions, sharp borders: `rounds` bilateral filters, σ in colour units of [0, 1]."""

    def __init__(self, rounds: int = 3, sigma_colour: float = 0.12, sigma_space: float = 3.0):
        super().__init__()
        self.rounds, self.sigma_colour, self.sigma_space = rounds, sigma_colour, sigma_space

    def forward(self, photo: Tensor) -> Tensor:
        space = (self.sigma_space, self.sigma_space)
        for _ in range(self.rounds):
            photo = kornia.filters.bilateral_blur(photo, (9, 9), self.sigma_colour, space)
        return photo


class Quantise(nn.Module):
    """Lightness in `levels` soft steps, saturation times `saturation`; works in CIE Lab."""

    def __init__(self, levels: int = 8, softness: float = 4.0, saturation: float = 1.25):
        super().__init__()
        self.levels, self.softness, self.saturation = levels, softness, saturation

    def forward(self, smooth: Tensor) -> Tensor:
        lab = kornia.color.rgb_to_lab(smooth)
        step = 100.0 / self.levels
        nearest = (torch.floor(lab[:, :1] / step) + 0.5) * step
        # tanh instead of a hard step: borders of a region stay free of jagged contours.
        light = nearest + step / 2 * torch.tanh(self.softness * (lab[:, :1] - nearest) / step)
        lab = torch.cat([light, lab[:, 1:] * self.saturation], dim=1)
        return kornia.color.lab_to_rgb(lab, clip=True)


class Ink(nn.Module):
    """Line mask (N, 1, H, W), 1 on paper and towards 0 on a line: thresholded XDoG of lightness."""

    def __init__(self, sigma: float = 0.9, sharpness: float = 18.0, threshold: float = -0.5):
        super().__init__()
        self.sigma, self.sharpness, self.threshold = sigma, sharpness, threshold

    def forward(self, smooth: Tensor) -> Tensor:
        grey = kornia.color.rgb_to_grayscale(smooth)
        fine, coarse = self._blur(grey, self.sigma), self._blur(grey, self.sigma * 1.6)
        difference = (fine - coarse) * 100
        return (1 + torch.tanh(self.sharpness * 0.1 * (difference - self.threshold))).clamp(0, 1)

    def _blur(self, grey: Tensor, sigma: float) -> Tensor:
        size = 2 * int(3 * sigma + 0.5) + 1
        return kornia.filters.gaussian_blur2d(grey, (size, size), (sigma, sigma))


class Toon(Teacher):
    """Photo to cartoon: (N, 3, H, W) RGB in [0, 1] to the same, any size from 9 pixels a side."""

    def __init__(self, ink: float = 0.85) -> None:
        super().__init__()
        self.smooth, self.quantise, self.ink_lines = Smooth(), Quantise(), Ink()
        self.ink = ink
        self.freeze()

    def settings(self) -> str:
        return f"v1 ink={self.ink}"

    def forward(self, photo: Tensor) -> Tensor:
        return self.layers(photo)["picture"]

    def layers(self, photo: Tensor) -> dict[str, Tensor]:
        smooth = self.smooth(photo)
        ink = self.ink * (1 - self.ink_lines(smooth))
        return {"picture": (self.quantise(smooth) * (1 - ink)).clamp(0, 1), "ink": ink}
