"""Stability loss: what a camera's noise or a step aside must not change in the student's output.

Consistency regularisation (Sajjadi et al. 2016) of the network itself: the outputs for the photo
with noise and for the photo moved by a few pixels, moved back, against the output for the photo.
"""

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor

from distill.core.arrays import over_white
from distill.core.images import moved
from distill.losses.term import LossTerm, Reads

LEVELS = 255


class Stable(LossTerm):
    """Mean |S(changed) − S(photo)|, half of it with noise, half moved; RGBA lies over white.

    `noise` is the standard deviation in levels of 255, `shift` the most that the photo moves in
    pixels, each way; its border pixels are repeated, and only what both photos show is compared.
    S(photo) is a target here and gets no gradient: else the two would also meet by what costs the
    picture its sharpness.
    """

    reads: ClassVar[Reads] = Reads.NETWORK

    def __init__(self, noise: float = 2.0, shift: int = 3) -> None:
        super().__init__()
        self.noise, self.shift = noise, shift

    def forward(self, network: Callable[[Tensor], Tensor], photo: Tensor, output: Tensor) -> Tensor:
        reference = over_white(output).detach()
        noisy = photo + self.noise / LEVELS * torch.randn_like(photo)
        by_noise = (over_white(network(noisy.clamp(0, 1))) - reference).abs().mean()
        down, right = torch.randint(-self.shift, self.shift + 1, (2,)).tolist()
        output_of_shift = over_white(network(moved(photo, -down, -right)))
        output_of_shift, reference = overlap(output_of_shift, reference, down, right)
        return (by_noise + (output_of_shift - reference).abs().mean()) / 2


def overlap(after: Tensor, before: Tensor, down: int, right: int) -> tuple[Tensor, Tensor]:
    """What two pictures (N, C, H, W) both show, `after` from a camera that moved by these steps."""
    for axis, step in ((2, down), (3, right)):
        size = after.shape[axis] - abs(step)
        after = after.narrow(axis, max(-step, 0), size)
        before = before.narrow(axis, max(step, 0), size)
    return after, before
