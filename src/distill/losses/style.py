"""Style loss: Gram matrices of VGG features (Gatys et al. 2016), with gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision.models import vgg

from distill.core import weights as weights_files
from distill.core.errors import DistillError
from distill.core.images import over_white
from distill.core.weights import WeightsFile
from distill.losses.term import LossTerm

_VGG16 = WeightsFile(
    "vgg16-397923af.pth",
    "https://download.pytorch.org/models/vgg16-397923af.pth",
    sha256="397923af",
)
_VGG19_CUT = WeightsFile(
    "vgg19_relu3_1.safetensors",
    sha256="ed946f1c02757a19f51b33c0b2742b8c0f50e890961bdbf38dc0036fa6a1b918",
)
# Layer name → index in torchvision's `features`.
_VGG16_LAYERS = {"relu1_2": 3, "relu2_2": 8, "relu3_3": 15, "relu4_3": 22}
_VGG19_LAYERS = {"relu1_1": 1, "relu2_1": 6, "relu3_1": 11}


def gram(features: Tensor) -> Tensor:
    """Gram matrices (N, C, C) of (N, C, H, W), divided by C·H·W."""
    n, c, h, w = features.shape
    flat = features.reshape(n, c, h * w)
    return flat @ flat.transpose(1, 2) / (c * h * w)


def gram_loss(student: Mapping[str, Tensor], target: Mapping[str, Tensor]) -> Tensor:
    """Sum over layers of the mean squared difference of Gram matrices, per sample, then mean."""
    losses = [F.mse_loss(gram(student[name]), gram(target[name])) for name in student]
    return torch.stack(losses).sum()


class VGGFeatures(nn.Module):
    """(N, 3, H, W) RGB in [0, 1] to named activations of a frozen VGG."""

    mean: Tensor
    std: Tensor

    def __init__(self, features: nn.Sequential, layers: Mapping[str, int]) -> None:
        super().__init__()
        self.features = features[: max(layers.values()) + 1]
        self.names = {index: name for name, index in layers.items()}
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1))
        for module in self.features:
            if isinstance(module, nn.ReLU):
                module.inplace = False
        self.requires_grad_(False).eval()

    def forward(self, picture: Tensor) -> dict[str, Tensor]:
        x, named = (picture - self.mean) / self.std, {}
        for index, layer in enumerate(self.features):
            x = layer(x)
            if index in self.names:
                named[self.names[index]] = x
        return named


def vgg_features(backbone: str) -> VGGFeatures:
    """The frozen backbone with its weights. Raises DistillError when they are not to be had."""
    if backbone == "vgg16":
        plan, file, layers = vgg.cfgs["D"], _VGG16, _VGG16_LAYERS
    else:
        plan, file, layers = vgg.cfgs["E"], _VGG19_CUT, _VGG19_LAYERS
    try:
        path = weights_files.find(file)
    except DistillError as error:
        hint = "; or train without it: loss=l1_sobel"
        if backbone == "vgg16" and weights_files.find_or_none(_VGG19_CUT):
            hint = "; or use the file at hand: style_backbone=vgg19_relu3_1"
        raise DistillError(f"style loss: {error}{hint}") from error
    state = weights_files.load_tensors(path)
    cut = VGGFeatures(vgg.make_layers(plan), layers)  # without the classifier's 120 M values
    wanted = cut.features.state_dict()
    if missing := [k for k in wanted if f"features.{k}" not in state]:
        raise DistillError(f"{path}: no {backbone} weights; lacks features.{missing[0]}")
    cut.features.load_state_dict({k: state[f"features.{k}"] for k in wanted})
    return cut


class Style(LossTerm):
    """Gram distance of student and target in a frozen VGG; RGBA is put over white first.

    `vgg16` reads relu1_2, 2_2, 3_3, 4_3 of torchvision's ImageNet weights (the paper's choice);
    `vgg19_relu3_1` reads relu1_1, 2_1, 3_1 of a smaller file and costs half as much.
    """

    def __init__(self, backbone: Literal["vgg16", "vgg19_relu3_1"] = "vgg16") -> None:
        super().__init__()
        self.vgg = vgg_features(backbone)

    def forward(self, student: Tensor, target: Tensor) -> Tensor:
        with torch.no_grad():
            wanted = self.vgg(over_white(target))
        return gram_loss(self.vgg(over_white(student)), wanted)
