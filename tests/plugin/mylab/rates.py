"""An optimizer and a schedule."""

from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import LambdaLR


class Momentum(SGD):
    """Stochastic gradient descent."""


def halved(optimizer: Optimizer, total_steps: int, val_every: int) -> LambdaLR:
    """Half the rate from the middle of the run on."""
    return LambdaLR(optimizer, lambda step: 0.5 if step > total_steps / 2 else 1.0)
