"""The criterion: named terms, each with a weight (w1 … w4 of the paper), summed."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from distill.core import nodes
from distill.core.errors import DistillError
from distill.losses.term import LossTerm, Reads

Features = Mapping[str, Tensor]


class Criterion(nn.Module):
    """Sum of weighted terms over (student, target), both (N, C, H, W) in [0, 1].

    Each term gets what it states to read: the pictures, activations of student and teacher by layer
    name, which `student_layers` and `teacher_layers` list for whoever records them, or the student
    itself, see `of_network`.

    `start` is the share of a run's steps after which a term begins to count in training; 0 where
    none is given. Whoever trains says by `advance` how far the run is. In evaluation mode every
    term counts at all times, so that the losses of early and late validations compare.
    """

    def __init__(
        self,
        terms: Mapping[str, nn.Module],
        weights: Mapping[str, float],
        start: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__()
        if not terms:
            raise DistillError(
                "every loss weight is 0: nothing to learn; choose e.g. loss=l1_sobel"
            )
        self._start = {name: (start or {}).get(name, 0.0) for name in terms}
        if min(self._start.values()) > 0:
            raise DistillError(
                "loss.start: every term starts late: nothing to learn before; let one start at 0"
            )
        self.terms = nn.ModuleDict(terms)
        # What a term does not state, as torch's own do not, is as in LossTerm.
        self._reads = {n: getattr(t, "reads", LossTerm.reads) for n, t in terms.items()}
        self._min_batch = {n: getattr(t, "min_batch", LossTerm.min_batch) for n, t in terms.items()}
        reading = [t for n, t in terms.items() if self._reads[n] is Reads.ACTIVATIONS]
        pairs = [pair for t in reading for pair in getattr(t, "layers", LossTerm.layers).items()]
        self.reads_classes = Reads.CLASSES in self._reads.values()
        self.student_layers = tuple(dict.fromkeys(student for student, _ in pairs))
        self.teacher_layers = tuple(dict.fromkeys(teacher for _, teacher in pairs))
        self._weights = {name: float(weights[name]) for name in terms}
        self.factors: dict[str, float] = {}
        # The names, not how far the run is: torch.compile compiles again for what a step reads.
        self._begun = tuple(terms)

    @property
    def weights(self) -> dict[str, float]:
        """What each term counts: its weight times its factor."""
        return {name: w * self.factors.get(name, 1.0) for name, w in self._weights.items()}

    def rescale(self, factors: Mapping[str, float]) -> None:
        """Set the factors of the terms named; all others have none."""
        self.factors = dict(factors)

    def advance(self, share: float) -> None:
        """From now on train with the terms that begin after `share` of the run's steps, in [0, 1].

        Until this is said all of them count.
        """
        self._begun = tuple(name for name, start in self._start.items() if share >= start)

    @property
    def min_batch(self) -> int:
        """The smallest batch that every term can be trained on, in pictures."""
        return max(self._min_batch.values())

    def of_network(
        self, network: Callable[[Tensor], Tensor], photo: Tensor, output: Tensor
    ) -> dict[str, Tensor]:
        """Raw values of the terms that ask the student more than its `output` for the `photo`.

        Apart from the others, which run in float32 and may be compiled by themselves.
        """
        return {
            name: self.terms[name](network, photo, output)
            for name in self._counting(len(photo))
            if self._reads[name] is Reads.NETWORK
        }

    def of_pictures(self, student: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Raw values of the terms that compare the pictures alone."""
        reads = self._reads.items()
        return {n: self.terms[n](student, target) for n, what in reads if what is Reads.PICTURES}

    def forward(
        self,
        student: Tensor,
        target: Tensor,
        student_features: Features | None = None,
        teacher_features: Features | None = None,
        of_network: Mapping[str, Tensor] | None = None,
        region: Tensor | None = None,
        classes: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The weighted sum and the raw value of every term that counts.

        In evaluation mode a term is left out of a batch too small for it: a last batch may be.
        `region` (N, 1, H, W) is how often each pixel counts: terms `by_pixel` get a student whose
        difference from the target is so many times as large. `classes` are the logits of the
        student's head and the shares of the target.
        """
        raw: dict[str, Tensor] = {}
        weighed = student if region is None else target + region * (student - target)
        for name in self._counting(len(student)):
            term = self.terms[name]
            if self._reads[name] is Reads.PICTURES:
                by_pixel = getattr(term, "by_pixel", LossTerm.by_pixel)
                raw[name] = term(weighed if by_pixel else student, target)
            elif self._reads[name] is Reads.ACTIVATIONS:
                raw[name] = term(student_features, teacher_features)
            elif self._reads[name] is Reads.CLASSES:
                assert classes is not None
                raw[name] = term(*classes)
            else:
                assert of_network is not None
                raw[name] = of_network[name]
        weights = self.weights
        return torch.stack([weights[n] * v for n, v in raw.items()]).sum(), raw

    def _counting(self, pictures: int) -> tuple[str, ...]:
        """The terms that count for a batch of so many pictures."""
        if self.training:
            return self._begun
        return tuple(name for name, least in self._min_batch.items() if pictures >= least)


def make_criterion(
    terms: Mapping[str, nodes.Node], weights: Mapping[str, float], start: Mapping[str, float]
) -> Criterion:
    """The terms whose weight is above 0. Raises DistillError for a name that is no term, and for a
    term without a weight."""
    for key, table in (("weights", weights), ("start", start)):
        if unknown := sorted(table.keys() - terms.keys()):
            raise DistillError(
                f"loss.{key}.{unknown[0]}: no such term; there are {', '.join(sorted(terms))}"
            )
    if idle := sorted(terms.keys() - weights.keys()):
        raise DistillError(f"loss.terms.{idle[0]}: has no weight, add +loss.weights.{idle[0]}=1")
    modules = {
        name: nodes.part(f"loss.terms.{name}", terms[name], nn.Module)
        for name, w in weights.items()
        if w > 0
    }
    return Criterion(modules, weights, start)
