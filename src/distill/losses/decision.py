"""Losses on decisions: cross-entropy and Dice between a head's classes and the target's."""

import torch
from torch import Tensor

from distill.core.images import highest
from distill.losses.term import LossTerm, Reads


def cross_entropy(logits: Tensor, shares: Tensor, borders: float = 0.0) -> Tensor:
    """Mean of −Σ share · log softmax over the pixels, for (N, K, H, W) both.

    A pixel counts `borders` times more where another class lies within a pixel: there thin lines
    and the places of borders are decided.
    """
    loss = -(shares * torch.log_softmax(logits, 1)).sum(1, keepdim=True)
    if borders:
        span = (highest(shares, 3) + highest(-shares, 3)).amax(1, keepdim=True)
        loss = loss * (1 + borders * span)
    return loss.mean()


def soft_dice(probability: Tensor, share: Tensor) -> Tensor:
    """1 − Dice of (N, H, W) in [0, 1], over each picture, in the mean (Milletari et al. 2016)."""
    both, either = (
        (a * b).sum((1, 2)) for a, b in ((probability, share), (probability, probability))
    )
    either = either + share.square().sum((1, 2))
    return (1 - (2 * both + 1) / (either + 1)).mean()


class Decision(LossTerm):
    """Cross-entropy of a head's classes, and `dice` × the soft Dice loss of the rarest one.

    Dice does not mind how much paper there is: a line that is missed costs what it is of all lines.
    `borders` as in `cross_entropy`.
    """

    reads = Reads.CLASSES

    def __init__(self, borders: float = 0.0, dice: float = 0.0) -> None:
        super().__init__()
        self.borders, self.dice = borders, dice

    def forward(self, logits: Tensor, shares: Tensor) -> Tensor:
        loss = cross_entropy(logits, shares, self.borders)
        if self.dice:
            rarest = shares.mean((0, 2, 3)).argmin()
            probability = torch.softmax(logits, 1).index_select(1, rarest[None])[:, 0]
            loss = loss + self.dice * soft_dice(
                probability, shares.index_select(1, rarest[None])[:, 0]
            )
        return loss
