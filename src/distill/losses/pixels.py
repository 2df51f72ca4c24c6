"""Losses between pixels: of their values, their edges, their steps, and their place in a patch."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from distill.core.images import sobel
from distill.losses.term import LossTerm

WINDOW = 16  # patches: in so many, what one pixel and the next have of the teacher's evens out


class SmoothL1(LossTerm):
    """Mean over all values of SmoothL1 (Huber); quadratic below `beta`, linear above.

    The default of 0.05 keeps nearly all of [0, 1] on the linear side. β = 1, the paper's setting,
    is pure L2 there: its gradient vanishes as the picture gets close, one cause of the blur.
    """

    by_pixel = True

    def __init__(self, beta: float = 0.05) -> None:
        super().__init__()
        self.beta = beta

    def forward(self, student: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(student, target, beta=self.beta)


class Sobel(LossTerm):
    """Edge loss (the paper's §4.2): L1 between Sobel gradients, over both directions.

    Pictures are (N, C, H, W) of any equal shape. Edges are taken once, of the difference, and
    channel by channel: the same number as from kornia's `spatial_gradient` of each picture, whose
    3-D convolution took half of a training step.
    """

    by_pixel = True

    def forward(self, student: Tensor, target: Tensor) -> Tensor:
        return sobel(student - target).abs().mean()


class Differences(LossTerm):
    """Mean |Δstudent − Δtarget| over both directions; pictures (N, C, H, W), sides of 2 or more.

    The anisotropic total variation (Rudin, Osher and Fatemi, 1992) of their difference. It sees
    what Sobel's kernels, which step over a pixel, cannot: patterns that alternate from one to the
    next.
    """

    by_pixel = True

    def forward(self, student: Tensor, target: Tensor) -> Tensor:
        error = student - target
        across = (error[..., 1:] - error[..., :-1]).abs().mean()
        down = (error[..., 1:, :] - error[..., :-1, :]).abs().mean()
        return (across + down) / 2


class Phases(LossTerm):
    """Mean |e_p − mean over p of e_p|, e_p the local mean of student − target at position p of the
    2×2 patches; pictures (N, C, H, W), sides of 2 or more.

    Against the grid of a last layer that writes such patches (Odena et al., 2016): each position
    has weights of its own. Where they differ on average, even areas show single pixels in a grid,
    which a head that decides makes stronger. Sobel's kernels step over a pixel and do not see it.
    """

    def forward(self, student: Tensor, target: Tensor) -> Tensor:
        height, width = (side // 2 * 2 for side in student.shape[2:])
        error = F.pixel_unshuffle((student - target)[..., :height, :width], 2)
        window = [min(WINDOW, side) for side in error.shape[2:]]
        means = F.avg_pool2d(error, window).unflatten(1, (-1, 4))
        return (means - means.mean(2, keepdim=True)).abs().mean()
