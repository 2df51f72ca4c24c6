"""What every loss term states of itself: what it reads, and how many pictures it needs."""

from collections.abc import Mapping
from enum import Enum
from typing import ClassVar

from torch import nn


class Reads(Enum):
    """What a term compares."""

    PICTURES = "pictures"  # student's and target, two tensors (N, C, H, W) in [0, 1]
    ACTIVATIONS = "activations"  # student's and teacher's: mappings of layer name to (N, …)
    # Logits (N, K, H, W) of a student's head before its sharpness, and the share of each class in
    # the target's pixels, of the same shape. See distill.models.students.heads.
    CLASSES = "classes"
    # The student as it trains, a function of photos (N, 3, H, W) in [0, 1] that gives float32
    # pictures; the photos; and its output for them.
    NETWORK = "network"


class LossTerm(nn.Module):
    """A module of what it reads that gives a scalar, the lower the more alike.

    Its random numbers come from torch's global generators, which every batch of a run sets
    again, so that a resumed run has the same. Any other module of two pictures is a term too:
    these are the values for what it does not state.

    >>> class Paler(distill.LossTerm):
    ...     def forward(self, student, target):
    ...         return (student - target).relu().mean()
    >>> Paler()(torch.ones(2, 3, 64, 64), torch.zeros(2, 3, 64, 64))
    tensor(1.)
    """

    reads: ClassVar[Reads] = Reads.PICTURES
    min_batch: ClassVar[int] = 1  # with fewer pictures it means nothing
    # It grows in proportion to student − target, pixel by pixel: loss.region weights that.
    by_pixel: ClassVar[bool] = False
    layers: Mapping[str, str] = {}  # of activations: the student's layer, the teacher's
