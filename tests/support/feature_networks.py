"""Feature networks whose distances follow from a formula."""

import torch
from torch import Tensor, nn

from distill.metrics.features import FeatureNetwork


class Means(FeatureNetwork):
    """The mean of each channel; notes how many pictures each batch has."""

    fid, kid, title, resize = "Fréchet (means)", "KID (means) ×1000", "means", "none"

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []
        self.bias = nn.Parameter(torch.zeros(3))

    def forward(self, pictures: Tensor) -> Tensor:
        self.seen.append(len(pictures))
        return pictures.mean((2, 3)) + self.bias


class Corner(FeatureNetwork):
    """The upper left pixel, which a PNG keeps; notes how many pictures each batch has."""

    fid, kid, title, resize = "Fréchet (corner)", "KID (corner) ×1000", "corner", "none"

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []
        self.register_buffer("weights", torch.ones(3))  # changes the fingerprint alone

    def forward(self, pictures: Tensor) -> Tensor:
        self.seen.append(len(pictures))
        return pictures[:, :, 0, 0]
