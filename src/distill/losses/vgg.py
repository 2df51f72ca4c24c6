"""A frozen VGG, cut behind the last layer that is read, for losses that compare its activations.

Simonyan and Zisserman 2015; torchvision's ImageNet weights of VGG16, or VGG19's up to relu3_1 in
the activation-normalised form of Gatys et al. 2016.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torchvision.models import vgg

from distill.core import weights as weights_files
from distill.core.errors import DistillError
from distill.core.images import IMAGENET_MEAN, IMAGENET_STD
from distill.core.state_dicts import load_tensors
from distill.core.weights import WeightsFile

# auto: the one whose weights are there, else vgg16, which is fetched.
Backbone = Literal["vgg16", "vgg19_relu3_1", "auto"]

_VGG16 = WeightsFile(
    "vgg16-397923af.pth",
    "https://download.pytorch.org/models/vgg16-397923af.pth",
    sha256="397923af",
)
_VGG19_CUT = WeightsFile(
    "vgg19_relu3_1.safetensors",
    sha256="ed946f1c02757a19f51b33c0b2742b8c0f50e890961bdbf38dc0036fa6a1b918",
)


class VGGFeatures(nn.Module):
    """(N, 3, H, W) RGB in [0, 1] to named activations of a frozen VGG."""

    mean: Tensor
    std: Tensor

    def __init__(self, features: nn.Sequential, layers: Mapping[str, int]) -> None:
        super().__init__()
        self.features = features[: max(layers.values()) + 1]
        self.names = {index: name for name, index in layers.items()}
        self.register_buffer("mean", torch.tensor(IMAGENET_MEAN).view(3, 1, 1))
        self.register_buffer("std", torch.tensor(IMAGENET_STD).view(3, 1, 1))
        for module in self.features:
            if isinstance(module, nn.ReLU):
                module.inplace = False
        self.requires_grad_(False).eval()

    def forward(self, picture: Tensor) -> dict[str, Tensor]:
        x, features_by_name = (picture - self.mean) / self.std, {}
        for index, layer in enumerate(self.features):
            x = layer(x)
            if index in self.names:
                features_by_name[self.names[index]] = x
        return features_by_name


def vgg_features(backbone: Backbone, layers: Iterable[str], term: str | None) -> VGGFeatures:
    """The frozen backbone with its weights, read at `layers` (relu1_1, relu1_2, relu2_1 …).

    Raises DistillError, which names the loss's `term` if it is one's, when the weights are not to
    be had.
    """
    key, hint = f"loss.weights.{term}", f"; or train without it: loss.weights.{term}=0"
    if backbone == "auto" or term is None:
        key, hint = f"style_backbone={backbone}", ""
    if backbone == "auto":
        backbone = available_backbone() or "vgg16"
    file, plan = (_VGG16, vgg.cfgs["D"]) if backbone == "vgg16" else (_VGG19_CUT, vgg.cfgs["E"])
    try:
        path = weights_files.find(file)
    except DistillError as error:
        if hint and backbone == "vgg16" and weights_files.find_or_none(_VGG19_CUT):
            hint = "; or use the available file: style_backbone=vgg19_relu3_1"
        raise DistillError(f"{key}: {error}{hint}") from error
    state = load_tensors(path)
    indices = _layers(plan)
    network = VGGFeatures(vgg.make_layers(plan), {name: indices[name] for name in layers})
    expected = network.features.state_dict()
    if missing := [k for k in expected if f"features.{k}" not in state]:
        raise DistillError(f"{path}: no {backbone} weights; lacks features.{missing[0]}")
    network.features.load_state_dict({k: state[f"features.{k}"] for k in expected})
    return network


def same_square(pictures: Sequence[Tensor], side: int | None, anywhere: bool) -> Sequence[Tensor]:
    """The same square of `side` pixels of every picture (N, C, H, W) of one size.

    Drawn `anywhere`, otherwise the middle; an axis that is not longer, or no side, is kept whole.
    """
    for axis in (2, 3):
        length = pictures[0].shape[axis]
        if side is None or length <= side:
            continue
        room, device = length - side, pictures[0].device
        if anywhere:  # a tensor, not a number: torch.compile would compile every place
            first = torch.randint(room + 1, (1,), device=device)
        else:
            first = torch.full((1,), room // 2, device=device)
        place = first + torch.arange(side, device=device)
        pictures = [picture.index_select(axis, place) for picture in pictures]
    return pictures


def available_backbone() -> Backbone | None:
    """The backbone whose weights need no download, the cheaper one first."""
    if weights_files.find_or_none(_VGG19_CUT):
        return "vgg19_relu3_1"
    return "vgg16" if weights_files.find_or_none(_VGG16) else None


def _layers(plan: Iterable[int | str]) -> dict[str, int]:
    """The rectified layers of one of torchvision's plans by the paper's names: their indices.

    A plan lists convolutions by their width, each followed by its ReLU, and pooling as M.
    """
    indices: dict[str, int] = {}
    index, block, number = 0, 1, 1
    for step in plan:
        if step == "M":
            index, block, number = index + 1, block + 1, 1
        else:
            indices[f"relu{block}_{number}"] = index + 1
            index, number = index + 2, number + 1
    return indices
