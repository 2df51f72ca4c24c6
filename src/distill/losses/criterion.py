"""The criterion: named terms, each with a weight (w1 … w4 of the paper), summed."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from distill.core.errors import DistillError
from distill.losses.gka import GKA, MIN_BATCH

Features = Mapping[str, Tensor]


class Criterion(nn.Module):
    """Sum of weighted terms over (student, target), both (N, C, H, W) in [0, 1].

    Picture terms compare the pictures; a GKA term compares activations, keyed by layer name, which
    `student_layers` and `teacher_layers` list for whoever records them.
    """

    def __init__(self, terms: Mapping[str, nn.Module], weights: Mapping[str, float]) -> None:
        super().__init__()
        if not terms:
            raise DistillError(
                "every loss weight is 0: nothing to learn; choose e.g. loss=l1_sobel"
            )
        self.terms = nn.ModuleDict(terms)
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
    def student_layers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(s for term in self._gka() for s in term.layers))

    @property
    def teacher_layers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(t for term in self._gka() for t in term.layers.values()))

    def forward(
        self,
        student: Tensor,
        target: Tensor,
        student_features: Features | None = None,
        teacher_features: Features | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The weighted sum and every term's raw value.

        In evaluation mode GKA is left out of a batch too small for it: a last batch may be.
        """
        raw = {
            name: term(student_features, teacher_features)
            if isinstance(term, GKA)
            else term(student, target)
            for name, term in self.terms.items()
            if self.training or not isinstance(term, GKA) or len(student) >= MIN_BATCH
        }
        weights = self.weights
        return torch.stack([weights[n] * v for n, v in raw.items()]).sum(), raw

    def _gka(self) -> list[GKA]:
        return [term for term in self.terms.values() if isinstance(term, GKA)]
