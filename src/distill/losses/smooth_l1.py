"""SmoothL1 (Huber) between pictures."""

import torch.nn.functional as F
from torch import Tensor

from distill.losses.term import LossTerm


class SmoothL1(LossTerm):
    """Mean over all values; quadratic below `beta`, linear above.

    The default of 0.05 keeps nearly all of [0, 1] on the linear side. β = 1, the paper's setting,
    is pure L2 there: its gradient vanishes as the picture gets close, one cause of the blur.
    """

    by_pixel = True

    def __init__(self, beta: float = 0.05) -> None:
        super().__init__()
        self.beta = beta

    def forward(self, student: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(student, target, beta=self.beta)
