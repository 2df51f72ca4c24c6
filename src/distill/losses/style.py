"""Style loss: Gram matrices of VGG features (Gatys et al. 2016), with gradient."""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from distill.core.arrays import over_white
from distill.losses.term import LossTerm
from distill.losses.vgg import Backbone, same_square, vgg_features

_LAYERS: Mapping[Backbone, tuple[str, ...]] = {
    "vgg16": ("relu1_2", "relu2_2", "relu3_3", "relu4_3"),
    "vgg19_relu3_1": ("relu1_1", "relu2_1", "relu3_1"),
}


def gram(features: Tensor) -> Tensor:
    """Gram matrices (N, C, C) of (N, C, H, W), divided by C·H·W."""
    n, c, h, w = features.shape
    flat = features.reshape(n, c, h * w)
    return flat @ flat.transpose(1, 2) / (c * h * w)


def gram_loss(student: Mapping[str, Tensor], target: Mapping[str, Tensor]) -> Tensor:
    """Sum over layers of the mean squared difference of Gram matrices, per sample, then mean."""
    losses = [F.mse_loss(gram(student[name]), gram(target[name])) for name in student]
    return torch.stack(losses).sum()


class Style(LossTerm):
    """Gram distance of student and target in a frozen VGG; RGBA is put over white first.

    `vgg16` reads relu1_2, 2_2, 3_3, 4_3 of torchvision's ImageNet weights (the paper's choice);
    `vgg19_relu3_1` reads relu1_1, 2_1, 3_1 of a smaller file and costs half as much. With
    `side` crops of so many pixels are read, drawn for every training batch and from the middle
    otherwise: the time falls with the area, and each crop's Gram matrices are compared.
    """

    def __init__(self, backbone: Backbone = "vgg16", side: int | None = None) -> None:
        super().__init__()
        self.side = side
        self.vgg = vgg_features(backbone, _LAYERS[backbone], "style")

    def forward(self, student: Tensor, target: Tensor) -> Tensor:
        student, target = over_white(student), over_white(target)
        student, target = same_square((student, target), self.side, self.training)
        with torch.no_grad():
            target_features = self.vgg(target)
        return gram_loss(self.vgg(student), target_features)
