"""The criterion: named terms, each with a weight (w1 … w4 of the paper), summed."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from distill.core.errors import DistillError
from distill.losses.term import LossTerm, Reads

Features = Mapping[str, Tensor]


class Criterion(nn.Module):
    """Sum of weighted terms over (student, target), both (N, C, H, W) in [0, 1].

    Each term gets what it states to read: the pictures, or activations of student and teacher by
    layer name, which `student_layers` and `teacher_layers` list for whoever records them.
    """

    def __init__(self, terms: Mapping[str, nn.Module], weights: Mapping[str, float]) -> None:
        super().__init__()
        if not terms:
            raise DistillError(
                "every loss weight is 0: nothing to learn; choose e.g. loss=l1_sobel"
            )
        self.terms = nn.ModuleDict(terms)
        # What a term does not state, as torch's own do not, is as in LossTerm.
        self._reads = {n: getattr(t, "reads", LossTerm.reads) for n, t in terms.items()}
        self._min_batch = {n: getattr(t, "min_batch", LossTerm.min_batch) for n, t in terms.items()}
        reading = [t for n, t in terms.items() if self._reads[n] is Reads.ACTIVATIONS]
        pairs = [pair for t in reading for pair in getattr(t, "layers", LossTerm.layers).items()]
        self.student_layers = tuple(dict.fromkeys(student for student, _ in pairs))
        self.teacher_layers = tuple(dict.fromkeys(teacher for _, teacher in pairs))
        self._weights = {name: float(weights[name]) for name in terms}
        self.factors: dict[str, float] = {}

    @property
    def weights(self) -> dict[str, float]:
        """What each term counts: its weight times its factor."""
        return {name: w * self.factors.get(name, 1.0) for name, w in self._weights.items()}

    def rescale(self, factors: Mapping[str, float]) -> None:
        """Set the factors of the terms named; all others have none."""
        self.factors = dict(factors)

    @property
    def min_batch(self) -> int:
        """The smallest batch that every term can be trained on, in pictures."""
        return max(self._min_batch.values())

    def forward(
        self,
        student: Tensor,
        target: Tensor,
        student_features: Features | None = None,
        teacher_features: Features | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The weighted sum and every term's raw value.

        In evaluation mode a term is left out of a batch too small for it: a last batch may be.
        """
        raw = {
            name: term(student_features, teacher_features)
            if self._reads[name] is Reads.ACTIVATIONS
            else term(student, target)
            for name, term in self.terms.items()
            if self.training or len(student) >= self._min_batch[name]
        }
        weights = self.weights
        return torch.stack([weights[n] * v for n, v in raw.items()]).sum(), raw
