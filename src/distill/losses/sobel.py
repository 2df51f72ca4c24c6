"""Edge loss: L1 between Sobel gradients (the paper's §4.2)."""

from torch import Tensor

from distill.core.images import sobel
from distill.losses.term import LossTerm


class Sobel(LossTerm):
    """Mean |∇student − ∇target| over both directions; pictures (N, C, H, W) of any equal shape.

    Edges are taken once, of the difference, and channel by channel: the same number as from
    kornia's `spatial_gradient` of each picture, whose 3-D convolution took half of a training step.
    """

    by_pixel = True

    def forward(self, student: Tensor, target: Tensor) -> Tensor:
        return sobel(student - target).abs().mean()
