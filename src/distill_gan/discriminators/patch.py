"""PatchGAN (Isola et al. 2017): is each patch of 70×70 pixels real?"""

from itertools import pairwise
from typing import Literal

from torch import Tensor, nn

Norm = Literal["batch", "instance", "none"]
WIDTHS = (64, 128, 256, 512)
LEAST = 8  # channels of the narrowest layer


class PatchDiscriminator(nn.Module):
    """(N, `channels`, H, W) in [0, 1] to logits (N, 1, H/8 - 2, W/8 - 2): 30×30 at 256².

    C64-C128-C256-C512 of 4×4 kernels, times the width factor `width`; no norm on the first layer.
    `same` pads each of the two convolutions without stride so that they keep the size: 32×32
    logits, as in TensorFlow. A critic under a gradient penalty takes norm="none": statistics of a
    batch would tie the gradients of its pictures together.
    """

    def __init__(
        self, channels: int, width: float = 1.0, norm: Norm = "batch", same: bool = False
    ) -> None:
        super().__init__()
        widths = [channels, *(max(LEAST, round(each * width)) for each in WIDTHS)]
        layers: list[nn.Module] = []
        for n, (i, o) in enumerate(pairwise(widths)):
            first = n == 0 or norm == "none"
            layers += _convolution(i, o, 2 if n < 3 else 1, same, bias=first or norm == "instance")
            if not first:
                layers.append(nn.BatchNorm2d(o) if norm == "batch" else nn.InstanceNorm2d(o))
            layers.append(nn.LeakyReLU(0.2, inplace=True))
        self.norm = norm
        self.model = nn.Sequential(*layers, *_convolution(widths[-1], 1, 1, same, bias=True))

    def forward(self, picture: Tensor) -> Tensor:
        return self.model(2 * picture - 1)


def _convolution(i: int, o: int, stride: int, same: bool, bias: bool) -> list[nn.Module]:
    # An even kernel without stride keeps the size only with one more column on one side.
    pad = [nn.ZeroPad2d((1, 2, 1, 2))] if same and stride == 1 else []
    return [*pad, nn.Conv2d(i, o, 4, stride, 0 if pad else 1, bias=bias)]
