"""HED, holistically nested edge detection (Xie, Tu 2015): VGG16 with an edge map at each stage.

The weights are those of the public PyTorch port (Niklaus 2018, `pytorch-hed`), converted from the
authors' own, trained on BSDS500; modules are named as the tensors in that file.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from distill.core.weights import WeightsFile

# The copy that ControlNet's authors keep: its hash is published, that of the port's file is not.
FILE = WeightsFile(
    "network-bsds500.pth",
    "https://huggingface.co/lllyasviel/ControlNet/resolve/main/annotator/ckpts/network-bsds500.pth",
    sha256="58a858782f5fa3e0ca3dc92e7a1a609add93987d77be3dfa54f8f8419d881a94",
)
PORT = WeightsFile(
    "network-bsds500.pytorch",
    "http://content.sniklaus.com/github/pytorch-hed/network-bsds500.pytorch",
)
MEAN = (104.00698793, 116.66876762, 122.67891434)  # of blue, green and red, 0 to 255
STAGES = {  # of VGG16: channels in and out, convolutions
    "One": (3, 64, 2),
    "Two": (64, 128, 2),
    "Thr": (128, 256, 3),
    "Fou": (256, 512, 3),
    "Fiv": (512, 512, 3),
}


class HED(nn.Module):
    """RGB (N, 3, H, W) in [0, 1] to the probability of an edge, (N, 1, H, W)."""

    def __init__(self) -> None:
        super().__init__()
        for name, (channels, width, count) in STAGES.items():
            layers: list[nn.Module] = [] if name == "One" else [nn.MaxPool2d(2)]
            for i in range(count):
                layers += [nn.Conv2d(width if i else channels, width, 3, padding=1), nn.ReLU()]
            setattr(self, f"moduleVgg{name}", nn.Sequential(*layers))
            setattr(self, f"moduleScore{name}", nn.Conv2d(width, 1, 1))
        self.moduleCombine = nn.Sequential(nn.Conv2d(len(STAGES), 1, 1), nn.Sigmoid())

    def forward(self, picture: Tensor) -> Tensor:
        mean = torch.tensor(MEAN, device=picture.device, dtype=picture.dtype)
        x = picture.flip(1) * 255 - mean[None, :, None, None]
        scores = []
        for name in STAGES:
            x = getattr(self, f"moduleVgg{name}")(x)
            score = getattr(self, f"moduleScore{name}")(x)
            scores.append(F.interpolate(score, picture.shape[-2:], mode="bilinear"))
        return self.moduleCombine(torch.cat(scores, 1))
