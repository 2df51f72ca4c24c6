"""The AnimeGANv2 generator (Chen et al. 2020) with the state-dict layout of its PyTorch port.

The port (bryandlee/animegan2-pytorch) normalises with GroupNorm over one group, that is over
(C, H, W) at once. Phone runtimes know InstanceNormalization only. Copying the weights into a
per-channel InstanceNorm destroys the picture (10 to 13 dB); the exact swap is `WholeNorm`.
"""

from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Literal, Self, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from distill.core import state_dicts
from distill.models.teachers.teacher import Teacher

Norm = Literal["group", "instance"]
Upsampling = Literal["asymmetric", "align_corners", "half_pixel"]
UPSAMPLING: tuple[Upsampling, ...] = get_args(Upsampling)


class WholeNorm(nn.Module):
    """GroupNorm(1, C) written as an instance norm over one channel, then scale and shift.

    (N, C, H, W) in and out. Equal to GroupNorm to float precision, and the only norm operator
    left in an exported graph is InstanceNormalization.
    """

    def __init__(self, channels: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        # flatten and unsqueeze, not one reshape: the exporter must see that there is one channel.
        whole = F.instance_norm(x.flatten(1).unsqueeze(1), eps=self.eps).reshape(x.shape)
        return whole * self.weight[:, None, None] + self.bias[:, None, None]


def make_norm(kind: Norm, channels: int) -> nn.Module:
    """The port's GroupNorm, or its exact equal in InstanceNorm terms."""
    return nn.GroupNorm(1, channels) if kind == "group" else WholeNorm(channels)


class ConvNormAct(nn.Sequential):
    """Reflection padding, convolution, norm, LeakyReLU(0.2): positions 0 to 3, as in the port."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        norm: Norm,
        kernel: int = 3,
        stride: int = 1,
        groups: int = 1,
    ) -> None:
        # A stride-2 layer is padded on the right and bottom only, as TensorFlow does.
        side = kernel // 2
        padding = (0, 1, 0, 1) if stride == 2 else (side, side, side, side)
        super().__init__(
            nn.ReflectionPad2d(padding),
            nn.Conv2d(inputs, outputs, kernel, stride, groups=groups, bias=groups > 1),
            make_norm(norm, outputs),
            nn.LeakyReLU(0.2),
        )


class InvertedResidual(nn.Module):
    """Expand ×2, depthwise 3×3, project; adds its input when the channels agree."""

    def __init__(self, inputs: int, outputs: int, norm: Norm) -> None:
        super().__init__()
        hidden = inputs * 2
        self.adds = inputs == outputs
        self.layers = nn.Sequential(
            ConvNormAct(inputs, hidden, norm, kernel=1),
            ConvNormAct(hidden, hidden, norm, groups=hidden),
            nn.Conv2d(hidden, outputs, 1, bias=False),
            make_norm(norm, outputs),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.adds else self.layers(x)


class AnimeGANv2(Teacher):
    """The generator, frozen: (N, 3, H, W) RGB in [0, 1] to the same; inside it is [-1, 1].

    Sides that do not divide by 4 are padded by reflection and the result is cropped. At 256² it
    costs 26.285 GMACs and holds 2,143,552 parameters. `norm` changes the operators, not the
    output, so it is no part of the fingerprint. `weights=None` leaves random weights (for tests).

    `upsampling` says where the two bilinear enlargements take their values from, and weights want
    the one that they were trained with: TensorFlow 1's, `asymmetric`, or the port's default,
    `align_corners`. With the wrong one the output lies up to 3 pixels off the photo at 256². With
    `auto` it is open until `choose` is called, and the port's default until then.
    """

    multiple = 4
    normalises = True
    takes_bfloat16 = True  # 56 dB from float32 on photographs, where a student is at 30

    def __init__(
        self,
        weights: str | Path | None = None,
        norm: Norm = "instance",
        upsampling: Upsampling | Literal["auto"] = "align_corners",
    ) -> None:
        super().__init__()
        self.open = upsampling == "auto"
        self.upsampling: Upsampling = "align_corners" if upsampling == "auto" else upsampling
        self.block_a = nn.Sequential(
            ConvNormAct(3, 32, norm, kernel=7),
            ConvNormAct(32, 64, norm, stride=2),
            ConvNormAct(64, 64, norm),
        )
        self.block_b = nn.Sequential(
            ConvNormAct(64, 128, norm, stride=2), ConvNormAct(128, 128, norm)
        )
        self.block_c = nn.Sequential(
            ConvNormAct(128, 128, norm),
            InvertedResidual(128, 256, norm),
            *(InvertedResidual(256, 256, norm) for _ in range(3)),
            ConvNormAct(256, 128, norm),
        )
        self.block_d = nn.Sequential(ConvNormAct(128, 128, norm), ConvNormAct(128, 128, norm))
        self.block_e = nn.Sequential(
            ConvNormAct(128, 64, norm),
            ConvNormAct(64, 64, norm),
            ConvNormAct(64, 32, norm, kernel=7),
        )
        self.out_layer = nn.Sequential(nn.Conv2d(32, 3, 1, bias=False), nn.Tanh())
        if weights is not None:
            self.origin = str(weights)
            state_dicts.load_into(self, weights)
        self.freeze()

    def fast(self) -> Self:
        """The quickest exact form for labelling, in place: GroupNorm, channels-last.

        Measured on 2 CPU cores at 256²: 0.28 s per picture against 0.46 s with InstanceNorm,
        whose kernel runs a single channel on a single thread.
        """
        for parent in list(self.modules()):
            for name, child in parent.named_children():
                if isinstance(child, WholeNorm):
                    group = nn.GroupNorm(1, child.weight.numel(), eps=child.eps)
                    group.weight, group.bias = child.weight, child.bias
                    setattr(parent, name, group)
        return self.to(memory_format=torch.channels_last)

    def forward(self, photo: Tensor) -> Tensor:
        height, width = photo.shape[-2:]
        x = F.pad(photo * 2 - 1, (0, -width % 4, 0, -height % 4), mode="reflect")
        output = self.generate(x)[..., :height, :width]
        return (output * 0.5 + 0.5).clamp(0, 1)

    def generate(self, x: Tensor) -> Tensor:
        """The bare network: [-1, 1] in and out, sides that divide by 4."""
        half = self.block_a(x)
        deep = self.block_c(self.block_b(half))
        deep = self.block_d(twice(deep, self.upsampling))
        return self.out_layer(self.block_e(twice(deep, self.upsampling)))

    def open_choices(self) -> Mapping[str, Self]:
        if not self.open:
            return {}
        choices: dict[str, Self] = {name: copy(self) for name in UPSAMPLING}
        for name, choice in choices.items():
            choice.choose(name)
        return choices

    def choose(self, name: str) -> None:
        modes: dict[str, Upsampling] = {mode: mode for mode in UPSAMPLING}
        self.upsampling, self.open = modes[name], False

    def settings(self) -> str:
        # Nothing of the port's own, so that pairs from before there was a choice keep their name.
        return "" if self.upsampling == "align_corners" else f"upsampling={self.upsampling}"


def twice(x: Tensor, upsampling: Upsampling) -> Tensor:
    """(N, C, H, W) bilinearly at twice the size, (N, C, 2H, 2W).

    Pixel i of the output is taken from position i/2 (`asymmetric`: TensorFlow 1's
    resize_bilinear), i · (H − 1) / (2H − 1) (`align_corners`) or (i − 0.5) / 2 (`half_pixel`).
    """
    height, width = x.shape[-2] * 2, x.shape[-1] * 2
    if upsampling == "asymmetric":
        # With a pixel repeated at the far end, corners aligned and one row too many the step is
        # exactly ½: PyTorch has no asymmetric mode.
        edged = F.pad(x, (0, 1, 0, 1), mode="replicate")
        size = (height + 1, width + 1)
        return F.interpolate(edged, size, mode="bilinear", align_corners=True)[..., :height, :width]
    corners = upsampling == "align_corners"
    return F.interpolate(x, (height, width), mode="bilinear", align_corners=corners)
