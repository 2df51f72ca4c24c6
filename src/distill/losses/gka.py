"""GKA: global kernel alignment between layers of teacher and student (the paper's §4.2; CKA).

With features X (n, p) and Y (n, q) of a batch of n pictures, flattened,
    GKA(X, Y) = ‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖)    (Frobenius norms),
a similarity in [0, 1]. ‖YᵀX‖² = Σ (XXᵀ)∘(YYᵀ), so n×n matrices are enough and p, q may be huge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from distill.core.errors import DistillError
from distill.losses.term import LossTerm, Reads

Layers = Mapping[str, str] | Sequence[Sequence[str]]

MIN_BATCH = 4  # below it centred Gram matrices have too few degrees of freedom to say anything
FLAT = 1e-12  # norms below it: a layer that gives every picture the same; its score is 0


def gka(x: Tensor, y: Tensor, centred: bool = True) -> Tensor:
    """Alignment of two feature batches (n, …) in [0, 1].

    Uncentred, as the paper writes it, unrelated ReLU features already score 0.9999: they all share
    a large mean. Raises DistillError for fewer than 4 pictures.
    """
    if len(x) < MIN_BATCH:
        raise DistillError(
            f"GKA compares pictures within a batch and needs at least {MIN_BATCH}, got {len(x)}; "
            "raise data.batch_size or set loss.weights.gka=0"
        )
    a, b = _gram(x, centred), _gram(y, centred)
    # The floor is far above the smallest float: dividing by that one turns the gradient into NaN.
    return (a * b).sum() / (a.norm() * b.norm()).clamp_min(FLAT)


def _gram(features: Tensor, centred: bool) -> Tensor:
    flat = features.flatten(1).float()
    if centred:
        flat = flat - flat.mean(0)
    return flat @ flat.T


class GKA(LossTerm):
    """Mean of 1 − GKA over pairs of layers.

    `layers` maps a student's module name to a teacher's, as pairs or as a mapping; both networks'
    activations come by these names.
    """

    reads = Reads.ACTIVATIONS
    min_batch = MIN_BATCH

    def __init__(self, layers: Layers, centred: bool = True) -> None:
        super().__init__()
        if not layers:
            raise DistillError("gka_layers is empty: map student layers to teacher layers")
        self.layers, self.centred = dict(layers), centred  # type: ignore[arg-type]

    def forward(self, student: Mapping[str, Tensor], teacher: Mapping[str, Tensor]) -> Tensor:
        scores = [gka(student[s], teacher[t], self.centred) for s, t in self.layers.items()]
        return 1 - torch.stack(scores).mean()
