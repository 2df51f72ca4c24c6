"""A loss term and a metric."""

from torch import Tensor

from distill.losses.term import LossTerm
from distill.metrics.metric import Metric


class Darkness(LossTerm):
    """How the mean darkness of both pictures differs."""

    def forward(self, student: Tensor, target: Tensor) -> Tensor:
        return (student.mean((1, 2, 3)) - target.mean((1, 2, 3))).abs().mean()


class Levels(Metric):
    """The mean absolute difference in levels of 255."""

    def __call__(self, output: Tensor, target: Tensor) -> Tensor:
        return 255 * (output - target).abs().mean((1, 2, 3))
