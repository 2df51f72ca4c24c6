"""Loose loss: pairs whose target is not aligned with the photo's pixels.

An artist, or a generative teacher, draws a line a few pixels beside where the photo has it, here to
the left and there to the right. Under a loss that compares pixel by pixel the best answer to that
is a blur. So the target is first laid over the student's output, place by place, by no more than a
few pixels (block matching: Jain and Jain 1981), and compared then.
"""

from itertools import product

import torch
import torch.nn.functional as F
from torch import Tensor

from distill.core.arrays import over_white
from distill.core.images import luma
from distill.losses.smooth_l1 import SmoothL1
from distill.losses.sobel import Sobel
from distill.losses.term import LossTerm

HALF = 2  # the first search is at half the resolution
FAR = 2e-4  # cost of a pixel's shift, squared: where nothing is to be seen, nothing moves


class Loose(LossTerm):
    """SmoothL1 + `edges` × Sobel to the target, moved by up to `radius` pixels, place by place.

    Where it is moved to is decided by the mean difference of the luma in a square of `window`
    pixels, first at half the resolution, then by single pixels; the shifts are smoothed over that
    window, too, and have no gradient. Pictures are (N, C, H, W) in [0, 1]; RGBA is put over white.
    """

    def __init__(
        self, radius: int = 4, window: int = 25, edges: float = 6.0, beta: float = 0.05
    ) -> None:
        super().__init__()
        self.radius, self.window, self.edges = radius, window, edges
        self.l1, self.sobel = SmoothL1(beta), Sobel()

    def forward(self, student: Tensor, target: Tensor) -> Tensor:
        student, target = over_white(student), over_white(target)
        with torch.no_grad():
            target = warp(target, shifts(student, target, self.radius, self.window))
        l1: Tensor = self.l1(student, target)
        return l1 + self.edges * self.sobel(student, target)


def shifts(student: Tensor, target: Tensor, radius: int, window: int) -> Tensor:
    """Where to take each pixel of the target from, (N, 2, H, W): pixels right and down.

    At most `radius` each way, of pictures (N, 3, H, W) with even sides.
    """
    student_luma, target_luma = luma(student), luma(target)
    small_student, small_target = (F.avg_pool2d(each, HALF) for each in (student_luma, target_luma))
    coarse = _best(small_student, small_target, radius // HALF, window // HALF | 1, FAR * HALF**2)
    coarse = HALF * F.interpolate(coarse, size=student_luma.shape[-2:], mode="nearest")
    coarse = _smooth(coarse, window)  # an odd shift lies between the two that were tried
    fine = _best(student_luma, warp(target_luma, coarse), HALF - 1, window, FAR)
    return _smooth(coarse + fine, window)


def warp(picture: Tensor, by: Tensor) -> Tensor:
    """(N, C, H, W) with each pixel taken from `by` (N, 2, H, W) pixels right and down of it.

    Bilinearly; beyond the border it is repeated.
    """
    height, width = picture.shape[-2:]
    across = torch.arange(width, device=by.device) + by[:, 0]
    down = torch.arange(height, device=by.device)[:, None] + by[:, 1]
    grid = torch.stack([(2 * across + 1) / width - 1, (2 * down + 1) / height - 1], -1)
    return F.grid_sample(
        picture, grid.to(picture.dtype), padding_mode="border", align_corners=False
    )


def _best(student: Tensor, target: Tensor, most: int, window: int, far: float) -> Tensor:
    """The shift in whole pixels, (N, 2, H, W), at which both are most alike around each pixel."""
    height, width = student.shape[-2:]
    padded = F.pad(target, (most, most, most, most), mode="replicate")
    least = torch.full_like(student, float("inf"))
    best = torch.zeros(len(student), 2, height, width, device=student.device, dtype=student.dtype)
    reach = range(-most, most + 1)
    # The shortest first: of equal costs the first counts.
    for right, down in sorted(product(reach, reach), key=lambda at: at[0] ** 2 + at[1] ** 2):
        rows, columns = most + down, most + right
        shifted = padded[..., rows : rows + height, columns : columns + width]
        cost = _smooth((student - shifted).abs(), window) + far * (right**2 + down**2)
        closer = cost < least
        least = torch.where(closer, cost, least)
        best = torch.where(closer, cost.new_tensor([right, down]).view(1, 2, 1, 1), best)
    return best


def _smooth(values: Tensor, window: int) -> Tensor:
    """The mean of the square of an odd `window` around each pixel, along rows, then columns.

    By running sums: a quarter of the time of `avg_pool2d` with windows of this size on a CPU.
    """
    half = window // 2
    for side in (-1, -2):
        pad = (half + 1, half, 0, 0) if side == -1 else (0, 0, half + 1, half)
        sums = F.pad(values, pad, mode="replicate").cumsum(side)
        length = sums.shape[side] - window
        values = (sums.narrow(side, window, length) - sums.narrow(side, 0, length)) / window
    return values
