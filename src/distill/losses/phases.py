"""Phase loss: against the grid of a last layer that writes 2×2 patches (Odena et al., 2016).

Each of the four positions in a patch has weights of its own. Where they differ on average, even
areas show single pixels in a grid, which a head that decides makes stronger. Sobel's kernels step
over a pixel and do not see it.
"""

import torch.nn.functional as F
from torch import Tensor

from distill.losses.term import LossTerm

WINDOW = 16  # patches: in so many, what one pixel and the next have of the teacher's evens out


class Phases(LossTerm):
    """Mean |e_p − mean over p of e_p|, e_p the local mean of student − target at position p of the
    2×2 patches; pictures (N, C, H, W), sides of 2 or more."""

    def forward(self, student: Tensor, target: Tensor) -> Tensor:
        height, width = (side // 2 * 2 for side in student.shape[2:])
        error = F.pixel_unshuffle((student - target)[..., :height, :width], 2)
        window = [min(WINDOW, side) for side in error.shape[2:]]
        means = F.avg_pool2d(error, window).unflatten(1, (-1, 4))
        return (means - means.mean(2, keepdim=True)).abs().mean()
