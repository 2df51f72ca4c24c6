"""Ink loss: L1 that counts where the target has a thin dark line.

Lines cover few pixels and their place is uncertain by some of them: under a plain L1 the safest
answer is the median, paper. The weight is the black-hat of the target's luma (Serra 1982), which is
the depth of lines up to 4 pixels across and 0 at edges and in flat areas.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from distill.core.arrays import over_white
from distill.core.images import black_hat, highest, luma
from distill.losses.term import LossTerm


def line_weights(target: Tensor) -> Tensor:
    """Depth of the nearest line within a pixel, (N, 1, H, W) in [0, 1], of RGB (N, 3, H, W).

    Widened by one pixel (3×3 maximum), so that ink beside the line costs as much as a lack of it.
    """
    return highest(black_hat(luma(target)), 3)


class InkWeighted(LossTerm):
    """Mean over all values of weight × |student − target|; RGBA is put over white first.

    A student that is unsure of a line makes it thin and pale. Against that `pale` × weight ×
    max(0, student − target) is added, and `pooled` × the difference of what is darkest within 1 and
    within 2 pixels, whose weight is widened by a pixel more: it does not mind where exactly the
    line is. Both are of each colour: on luma alone they tint thin lines.
    """

    by_pixel = True

    def __init__(self, pale: float = 0.0, pooled: float = 0.0) -> None:
        super().__init__()
        self.pale, self.pooled = pale, pooled

    def forward(self, student: Tensor, target: Tensor) -> Tensor:
        student, target = over_white(student), over_white(target)
        with torch.no_grad():
            weights = line_weights(target)
        above = student - target
        loss = (weights * above.abs()).mean()
        if self.pale:
            loss = loss + self.pale * (weights * above.clamp_min(0)).mean()
        if self.pooled:
            wide = highest(weights, 3)
            for _ in range(2):  # the minimum over 3×3 of that over 3×3 is the one over 5×5
                student, target = Lowest.apply(student), Lowest.apply(target)
                loss = loss + self.pooled * (wide * (student - target).abs()).mean()
        return loss


class Lowest(torch.autograd.Function):
    """The smallest value of the 3×3 around each pixel of (N, C, H, W); the border ends the square.

    Along the rows, then the columns. Where several are smallest, one of them has the gradient. On a
    CPU a quarter of what the gradient of `max_pool2d` takes in the layout of a student's output.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x, *rows = _lowest_of_three(x, 3)
        x, *columns = _lowest_of_three(x, 2)
        ctx.save_for_backward(*rows, *columns)
        return x

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        row_centre, row_before, centre, before = ctx.saved_tensors
        return _spread(_spread(grads[0], centre, before, 2), row_centre, row_before, 3)


def _lowest_of_three(x: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """Along a dimension, and where that is the value itself, and where the one before it."""
    size = x.shape[dim]
    edged = F.pad(x, (1, 1, 0, 0) if dim == 3 else (0, 0, 1, 1), value=float("inf"))
    before, after = edged.narrow(dim, 0, size), edged.narrow(dim, 2, size)
    lowest = torch.minimum(torch.minimum(before, x), after)
    return lowest, lowest == x, lowest == before


def _spread(grad: Tensor, centre: Tensor, before: Tensor, dim: int) -> Tensor:
    """The gradient of each of three values that were chosen from."""
    size = grad.shape[dim] - 1
    grad_centre = grad * centre
    others = grad - grad_centre
    grad_before = others * before
    grad_centre.narrow(dim, 0, size).add_(grad_before.narrow(dim, 1, size))
    grad_centre.narrow(dim, 1, size).add_((others - grad_before).narrow(dim, 0, size))
    return grad_centre
