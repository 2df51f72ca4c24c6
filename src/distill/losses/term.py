"""What every loss term states of itself: what it reads, and how many pictures it needs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import ClassVar

from torch import nn


class Reads(Enum):
    """The pair of values that a term compares, student first."""

    PICTURES = "pictures"  # two tensors (N, C, H, W) in [0, 1]
    ACTIVATIONS = "activations"  # two mappings of layer name to activations (N, …)


class LossTerm(nn.Module):
    """A module of two values that gives a scalar, the lower the more alike.

    Any other module of two pictures is a term too: these are the values for what it does not state.
    """

    reads: ClassVar[Reads] = Reads.PICTURES
    min_batch: ClassVar[int] = 1  # with fewer pictures it means nothing
    layers: Mapping[str, str] = {}  # of activations: the student's layer, the teacher's
