"""Ink, the thin dark lines of a drawing: how much of a teacher's a student has, and how dark.

Ink pixels are those whose black-hat (`distill.core.filters`) is above a depth. A line counts as
drawn within one pixel of its place: PSNR rewards a student that leaves out a line which it cannot
place to the pixel, and these figures do not.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from distill.core.filters import black_hat, highest, luma

LEAST = 0.10  # of luma in [0, 1]; fainter is shading and noise
DARKER = (0.20, 0.30)  # further depths at which recall and precision are taken
FARTHEST = 16.0  # pixels: a line with no counterpart nearer than this counts as this far
FIGURES = (
    "ink recall",
    "ink precision",
    "ink depth",
    *(f"ink {figure} at {depth}" for depth in DARKER for figure in ("recall", "precision")),
    "ink mass",
    "sharpness",
)
CHAMFER = "chamfer distance (px)"


def ink_sums(student: Tensor, teacher: Tensor) -> Tensor:
    """What each figure divides by what, (N, 9, 2) in the order of FIGURES, of RGB (N, 3, H, W).

    - recall: the teacher's ink pixels with a student's one within 1 pixel, of the teacher's;
    - precision: the student's with a teacher's one within 1 pixel, of the student's;
    - depth: at the teacher's ink pixels the student's largest black-hat within 1 pixel, no more
      than the teacher's, of the teacher's black-hat;
    - recall and precision at greater depths: the same of ink pixels that are at least as deep;
    - mass: the student's black-hat over all pixels, of the teacher's: above 1 where lines are too
      dark or too many;
    - sharpness: the same of the absolute Laplacian of the luma.

    All but the last two are in [0, 1]. Of many pictures a figure is the sum of the first over the
    sum of the second: a picture with little ink then counts little.
    """
    grey, wanted_grey = luma(student.float()), luma(teacher.float())
    drawn, wanted = black_hat(grey), black_hat(wanted_grey)
    near_drawn, near_wanted = highest(drawn, 3), highest(wanted, 3)  # within a pixel
    pairs = []
    for depth in (LEAST, *DARKER):
        has, wants = drawn > depth, wanted > depth
        pairs += [(wants & (near_drawn > depth), wants), (has & (near_wanted > depth), has)]
    ink = wanted * (wanted > LEAST)
    pairs.insert(2, (torch.minimum(near_drawn, ink), ink))
    pairs += [(drawn, wanted), (_laplacian(grey).abs(), _laplacian(wanted_grey).abs())]
    sums = [torch.stack([part.flatten(1).sum(1).float() for part in pair], -1) for pair in pairs]
    return torch.stack(sums, 1)


def chamfer_sums(student: Tensor, teacher: Tensor) -> Tensor:
    """Sum of the distances between the lines of both, and their count, (N, 1, 2), of (N, 3, H, W).

    For each ink pixel of the one the nearest of the other (Barrow et al. 1977), both ways, in
    pixels and at most FARTHEST: the quotient is the symmetric chamfer distance.
    """
    from scipy.ndimage import distance_transform_edt

    sums = torch.zeros(len(student), 1, 2)
    lines = [(black_hat(luma(x.float())) > LEAST)[:, 0].cpu().numpy() for x in (student, teacher)]
    for n, (a, b) in enumerate(zip(*lines, strict=True)):
        for ours, others in ((a, b), (b, a)):
            # Without any line the transform measures to a place outside of the picture.
            to = distance_transform_edt(~others) if others.any() else np.full(a.shape, FARTHEST)
            sums[n, 0] += torch.tensor([to[ours].clip(max=FARTHEST).sum(), ours.sum()])
    return sums


def ratios(sums: Tensor) -> Tensor:
    """The figures, (…, k), of such sums (…, k, 2); NaN where there is no ink."""
    return sums[..., 0] / sums[..., 1]


def _laplacian(grey: Tensor) -> Tensor:
    """(N, 1, H, W): the four neighbours minus four times the pixel, the border's repeated."""
    padded = F.pad(grey, (1, 1, 1, 1), mode="replicate")
    beside = padded[..., 1:-1, 2:] + padded[..., 1:-1, :-2]
    above = padded[..., 2:, 1:-1] + padded[..., :-2, 1:-1]
    return beside + above - 4 * grey
