"""Feature distance: L1 between activations of a frozen VGG, with gradient (Johnson et al. 2016).

Where a line's place is uncertain by a pixel, the mean picture has no line at all: the features of
an edge then miss, which costs more here than a line one pixel off.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from distill.core.arrays import over_white
from distill.losses.term import LossTerm
from distill.losses.vgg import Backbone, same_square, vgg_features

LAYERS = ("relu1_1", "relu2_1", "relu3_1")
DARK = 1e-6  # mean activation below it: a layer that sees nothing in the target


class FeatureDistance(LossTerm):
    """Mean over `layers` of ‖φ(student) − φ(target)‖₁ / ‖φ(target)‖₁, each over the batch.

    A ratio, so that no layer outweighs another, whatever the scale of its activations: 0 for equal
    pictures, of the order of 1 for unrelated ones. Read are crops of `side` pixels, at a place that
    every training batch samples again and in the middle otherwise: the time falls with the area.
    RGBA is put over white first. With `halvings` both are compared at a half, a quarter … of their
    size, where a layer sees more of them.
    """

    term: str | None = "features"

    def __init__(
        self,
        backbone: Backbone = "vgg16",
        side: int | None = 112,
        layers: Sequence[str] = LAYERS,
        halvings: int = 0,
    ) -> None:
        super().__init__()
        self.vgg, self.side = vgg_features(backbone, layers, self.term), side
        self.halvings = halvings

    def forward(self, student: Tensor, target: Tensor) -> Tensor:
        student, target = over_white(student), over_white(target)
        student, target = same_square((student, target), self.side, self.training)
        if self.halvings:
            student, target = (F.avg_pool2d(each, 2**self.halvings) for each in (student, target))
        with torch.no_grad():
            target_features = self.vgg(target)
        features = self.vgg(student)
        ratios = [
            (features[name].float() - reference).abs().mean()
            / reference.float().abs().mean().clamp_min(DARK)
            for name, reference in target_features.items()
        ]
        return torch.stack(ratios).mean()
