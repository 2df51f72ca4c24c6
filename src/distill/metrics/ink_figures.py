"""Ink, the thin dark lines of a drawing: how much of a teacher's a student has drawn, and how dark.

Ink pixels are those whose black-hat (`distill.core.black_hat`) is above `LEAST`. A line counts as
drawn within one pixel of its place: PSNR rewards a student that leaves out a line which it cannot
place to the pixel, and these figures do not.
"""

from __future__ import annotations

import torch
from torch import Tensor

from distill.core.black_hat import black_hat, highest, luma

LEAST = 0.10  # of luma in [0, 1]; fainter is shading and noise
FIGURES = ("ink recall", "ink precision", "ink depth")


def ink_sums(student: Tensor, teacher: Tensor) -> Tensor:
    """What each figure divides by what, (N, 3, 2) in the order of FIGURES, of RGB (N, 3, H, W).

    - recall: the teacher's ink pixels with a student's one within 1 pixel, of the teacher's;
    - precision: the student's with a teacher's one within 1 pixel, of the student's;
    - depth: at the teacher's ink pixels the student's largest black-hat within 1 pixel, no more
      than the teacher's, of the teacher's black-hat.

    A figure is in [0, 1]. Of many pictures it is the sum of the first over the sum of the second:
    a picture with little ink then counts little.
    """
    drawn, wanted = black_hat(luma(student.float())), black_hat(luma(teacher.float()))
    near_drawn, near_wanted = highest(drawn, 3), highest(wanted, 3)  # within a pixel
    has, wants = drawn > LEAST, wanted > LEAST
    pairs = (
        (wants & (near_drawn > LEAST), wants),
        (has & (near_wanted > LEAST), has),
        (torch.minimum(near_drawn, wanted) * wants, wanted * wants),
    )
    return torch.stack([torch.stack([_sum(part) for part in pair], -1) for pair in pairs], 1)


def ratios(sums: Tensor) -> Tensor:
    """The three figures, (…, 3), of such sums (…, 3, 2); NaN where there is no ink."""
    return sums[..., 0] / sums[..., 1]


def _sum(values: Tensor) -> Tensor:
    return values.flatten(1).sum(1).float()
