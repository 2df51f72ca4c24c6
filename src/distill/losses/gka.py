"""GKA: global kernel alignment between layers of teacher and student (the paper's §4.2; CKA).

With features X (n, p) and Y (n, q) of a batch of n pictures, flattened,
    GKA(X, Y) = ‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖)    (Frobenius norms).
‖YᵀX‖² = Σ (XXᵀ)∘(YYᵀ), so n×n matrices are enough and p, q may be huge: it is the cosine between
the Gram matrices. The estimators differ in what is taken off these first:

    plain     nothing, as the paper writes it: all ReLU features share a large mean, and unrelated
              ones score up to 0.9999.
    centred   the mean over the batch: the biased estimate of HSIC (Kornblith et al. 2019). Where
              features outnumber pictures, each picture is hardly like another one but itself, in
              both layers: the diagonals agree, whatever the pictures are.
    unbiased  diagonal, row and column means: HSIC₁ (Song et al. 2012, equation 5) in numerator and
              denominator, as Nguyen, Raghu and Kornblith 2021 use it, here by U-centring (Székely
              and Rizzo 2014), which is the same. Of independent features the mean is 0.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from distill.core.errors import DistillError
from distill.losses.term import LossTerm, Reads

Layers = Mapping[str, str] | Sequence[Sequence[str]]
Estimator = Literal["unbiased", "centred", "plain"]

MIN_BATCH = 4  # with 3 pictures nothing is left of a Gram matrix whose diagonal and means are gone
FLAT = 1e-12  # norms below it: a layer that gives every picture the same; its score is 0


def gka(x: Tensor, y: Tensor, estimator: Estimator = "unbiased") -> Tensor:
    """Alignment of two feature batches (n, …): 1 of the same up to scale and rotation.

    In [-1, 1] where unbiased, else in [0, 1]. Raises DistillError for fewer than 4 pictures.
    """
    if len(x) < MIN_BATCH:
        raise DistillError(
            f"GKA compares pictures within a batch and needs at least {MIN_BATCH}, got {len(x)}; "
            "raise data.batch_size or set loss.weights.gka=0"
        )
    a, b = _gram(x, estimator), _gram(y, estimator)
    # The floor is far above the smallest float: dividing by that one turns the gradient into NaN.
    return (a * b).sum() / (a.norm() * b.norm()).clamp_min(FLAT)


def _gram(features: Tensor, estimator: Estimator) -> Tensor:
    flat = features.flatten(1).float()
    if estimator == "plain":
        return flat @ flat.T
    flat = flat - flat.mean(0)  # unbiased it changes nothing, but for rounding
    gram = flat @ flat.T
    if estimator == "centred":
        return gram
    # Without diagonal, so that all rows and columns sum to 0.
    n = len(gram)
    others = 1 - torch.eye(n, device=gram.device)
    gram = gram * others
    rows = gram.sum(0) / (n - 2)
    return (gram - rows - rows[:, None] + rows.sum() / (n - 1)) * others


class GKA(LossTerm):
    """Mean of 1 − GKA over pairs of layers.

    `layers` maps a student's module name to a teacher's, as pairs or as a mapping; both networks'
    activations come by these names. `centred` is of earlier runs, which had no `estimator`: where
    it is set it decides, true for centred and false for plain.
    """

    reads = Reads.ACTIVATIONS
    min_batch = MIN_BATCH

    def __init__(
        self, layers: Layers, estimator: Estimator = "unbiased", centred: bool | None = None
    ) -> None:
        super().__init__()
        if not layers:
            raise DistillError("gka_layers is empty: map student layers to teacher layers")
        self.layers = dict(layers)  # type: ignore[arg-type]
        earlier: dict[bool | None, Estimator] = {True: "centred", False: "plain"}
        self.estimator = earlier.get(centred, estimator)

    def forward(self, student: Mapping[str, Tensor], teacher: Mapping[str, Tensor]) -> Tensor:
        scores = [gka(student[s], teacher[t], self.estimator) for s, t in self.layers.items()]
        return 1 - torch.stack(scores).mean()
