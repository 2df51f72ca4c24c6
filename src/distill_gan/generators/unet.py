"""The U-Net generator of Pix2Pix (Isola et al. 2017), narrowed as a lens needs it.

Width factors and separable convolutions follow "Training a Tiny Pix2Pix GAN for Snapchat": one
factor for the encoder, one for the decoder, nearest-neighbour upsampling before each convolution.
"""

from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from distill.core.errors import DistillError

Upsampling = Literal["transposed", "nearest"]
BASE, WIDEST = 64, 512  # channels at half size, and at most, for a width factor of 1
DROPPED = 3  # innermost blocks of the decoder with dropout, whose noise stands for z in the paper
LEAST = 8  # channels of the narrowest layer
SMALLEST = 16


class UNet(nn.Module):
    """(N, `in_channels`, size, size) in [0, 1] to (N, `out_channels`, size, size) in [0, 1].

    As many halvings as `size`, a power of two, allows: 8 at 256. `encoder` and `decoder` are width
    factors. `dropout` acts in training only. With all at its default and
    upsampling="transposed" it has the paper's 54,414,531 parameters.

    Raises DistillError for a size that is no power of two from 16.
    """

    def __init__(
        self,
        size: int = 256,
        in_channels: int = 3,
        out_channels: int = 3,
        encoder: float = 1.0,
        decoder: float = 1.0,
        separable: bool = False,
        upsampling: Upsampling = "nearest",
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        if size < SMALLEST or size & (size - 1):
            raise DistillError(
                f"data.crop_size={size}: a U-Net halves its picture down to one pixel, so its side "
                f"is a power of two from {SMALLEST}: 128, 256, 512"
            )
        self.size, self.fixed, self.multiple = size, (size, size), size
        full = [min(BASE << i, WIDEST) for i in range(size.bit_length() - 1)]
        down = [in_channels, *(_width(c, encoder) for c in full)]
        up = [out_channels, *(_width(c, decoder) for c in full[:-1])]
        last = len(full) - 1
        self.down = nn.ModuleList()
        for n, (i, o) in enumerate(pairwise(down)):
            norm = 0 < n < last
            layers: list[nn.Module] = [nn.LeakyReLU(0.2)] if n else []
            layers += _convolution(nn.Conv2d, i, o, (4, 2, 1), separable and n > 0, not norm)
            self.down.append(nn.Sequential(*layers, *([nn.BatchNorm2d(o)] if norm else [])))
        self.up = nn.ModuleList(
            _up(
                (up[n + 1] if n < last else 0) + down[n + 1],
                up[n],
                separable and n > 0,
                upsampling,
                norm=n > 0,
                dropout=dropout if n > last - DROPPED else 0.0,
            )
            for n in reversed(range(len(full)))
        )

    def forward(self, photo: Tensor) -> Tensor:
        x, skips = 2 * photo - 1, []
        for block in self.down:
            x = block(x)
            skips.append(x)
        x = self.up[0](skips.pop())
        for block in self.up[1:]:
            x = block(torch.cat([x, skips.pop()], 1))
        return (torch.tanh(x) + 1) / 2


def _width(channels: int, factor: float) -> int:
    return max(LEAST, round(channels * factor))


def _convolution(
    kind: type[nn.Module], i: int, o: int, shape: tuple[int, int, int], separable: bool, bias: bool
) -> list[nn.Module]:
    """Kernel, stride and padding are its `shape`; a separable one is depthwise, then 1×1."""
    if not separable:
        return [kind(i, o, *shape, bias=bias)]
    return [kind(i, i, *shape, groups=i, bias=False), nn.Conv2d(i, o, 1, bias=bias)]


def _up(
    i: int, o: int, separable: bool, upsampling: Upsampling, norm: bool, dropout: float
) -> nn.Sequential:
    layers: list[nn.Module] = [nn.ReLU()]
    if upsampling == "nearest":
        layers.append(nn.Upsample(scale_factor=2))
        layers += _convolution(nn.Conv2d, i, o, (3, 1, 1), separable, not norm)
    else:
        layers += _convolution(nn.ConvTranspose2d, i, o, (4, 2, 1), separable, not norm)
    if norm:
        layers.append(nn.BatchNorm2d(o))
    if dropout:
        layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers)
