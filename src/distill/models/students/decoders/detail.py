"""`detail`: features at low resolution, and an output that starts from the photo's own pixels."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from distill.core.errors import DistillError
from distill.models.students.blocks import AddedSeparable, conv_norm, double, small, smoothing
from distill.models.students.global_statistics import Adapt, unchanged

LOGITS = 4.0  # a photo x enters the last layer as 4x - 2, so an untrained student gives the photo


class Detail(nn.Module):
    """Features of strides 1 … 32 or 1 … 16, the photo first, to a picture in [0, 1].

    At each step a 1×1 convolution works before the ×2, where the picture is smallest, and meets a
    1×1 of the skip. At half size the skip is the photo itself, its 2×2 patches as channels; the
    last layer writes 2×2 patches again, a transposed convolution without overlap. So the photo's
    every pixel reaches the output, and nothing is convolved at full size, where it costs most.
    `blocks` says how many separable blocks work at half, a quarter and an eighth of the size,
    `kernel` the side of their depthwise convolutions, one number or three, `context` how many wide
    ones at the lowest resolution: a teacher that normalises over the whole picture colours each
    part by all of it. Two of 9×9 see all of 8×8, a picture of 256² at stride 32. `bilinear` smooths
    behind the ×2 to an eighth, a quarter and half of the size: where a head decides, borders in
    slow transitions otherwise show the squares of the nearest-neighbour ×2.
    `output_kernel` is the side of a depthwise convolution of the output's logits at full size, 0
    for none: the patches know nothing of each other, and a decided border shows it as a row of
    beads. It begins as the identity.
    Exports under the profile `transposed`.
    """

    def __init__(
        self,
        channels: Sequence[int],
        strides: Sequence[int],
        out_channels: int = 3,
        half: int = 16,
        quarter: int = 32,
        eighth: int = 48,
        blocks: Sequence[int] = (2, 2, 0),
        kernel: int | Sequence[int] = 5,
        context: int = 0,
        context_kernel: int = 9,
        bilinear: bool | Sequence[bool] = False,
        output_kernel: int = 0,
    ) -> None:
        super().__init__()
        sides = 3 * [kernel] if isinstance(kernel, int) else [*kernel]
        kernels = {"kernel": sides, "context_kernel": [context_kernel]}
        if output_kernel:
            kernels["output_kernel"] = [output_kernel]
        _check(half, blocks, kernels, channels[0])
        photo, _, fourth, eight, sixteenth, *deeper = channels
        deepest = channels[-1]
        at2, at4, at8 = (
            nn.Sequential(*(AddedSeparable(width, side) for _ in range(count)))
            for width, count, side in zip((half, quarter, eighth), blocks, sides, strict=True)
        )
        self.context = nn.Sequential(
            *(AddedSeparable(deepest, context_kernel) for _ in range(context))
        )
        if deeper:
            self.up16 = conv_norm(deepest, sixteenth)
        self.up8, self.skip8 = conv_norm(sixteenth, eighth), conv_norm(eight, eighth)
        self.at8 = at8
        self.up4, self.skip4 = conv_norm(eighth, quarter), conv_norm(fourth, quarter)
        self.at4 = at4
        self.up2, self.patches = conv_norm(quarter, half), nn.Conv2d(photo, half, 2, 2)
        small(self.up2[1])  # type: ignore[arg-type]
        self.at2 = at2
        smooth = [bilinear] * 3 if isinstance(bilinear, bool) else [*bilinear]
        if len(smooth) != 3:
            raise DistillError(f"decoder.build.bilinear={smooth}: true, false, or three of them")
        self.smooth8, self.smooth4, self.smooth2 = (
            smoothing(width) if each else nn.Identity()
            for width, each in zip((eighth, quarter, half), smooth, strict=True)
        )
        self.out = nn.ConvTranspose2d(half, out_channels, 2, 2)
        self.smooth_output: nn.Module = nn.Identity()
        if output_kernel:
            size = (out_channels, out_channels, output_kernel)
            conv = nn.Conv2d(*size, padding=output_kernel // 2, groups=out_channels, bias=False)
            self.smooth_output = conv
            nn.init.dirac_(conv.weight, out_channels)
        self.activation: nn.Module = nn.Sigmoid()
        # Where the whole picture is told of: before a 1×1, not after a sum at twice the size. There
        # ONNX Runtime would leave its blocked layout for it, which takes a fifth of the time.
        self.adapted = (sixteenth, eighth, quarter, out_channels)
        self._start_at_the_photo(photo)

    def forward(self, features: list[Tensor], adapt: Adapt = unchanged) -> Tensor:
        photo, _, fourth, eight, sixteenth, *deeper = features
        x = self.context(features[-1])
        if deeper:
            x = torch.relu(double(self.up16(x)) + sixteenth)
        x = self.smooth8(double(self.up8(adapt(x))))
        x = self.at8(torch.relu(x + self.skip8(eight)))
        x = self.smooth4(double(self.up4(adapt(x))))
        x = self.at4(torch.relu(x + self.skip4(fourth)))
        x = self.smooth2(double(self.up2(adapt(x))))
        x = self.at2(torch.relu(x + self.patches(photo)))
        return self.activation(self.smooth_output(adapt(self.out(x))))

    @torch.no_grad()
    def _start_at_the_photo(self, channels: int) -> None:
        """Channel 4c + 2i + j of the patches is pixel (i, j) of colour c, going in and out."""
        assert self.patches.bias is not None
        assert self.out.bias is not None
        count = 4 * channels
        self.patches.bias.zero_()
        self.patches.weight[:count] = 0.0
        self.out.weight.mul_(0.1)
        self.out.weight[:count] = 0.0
        self.out.bias.fill_(-LOGITS / 2)
        self.out.bias[channels:] = LOGITS  # opaque
        for channel in range(count):
            colour, (row, column) = channel // 4, divmod(channel % 4, 2)
            self.patches.weight[channel, colour, row, column] = LOGITS
            if colour < self.out.out_channels:  # a palette of two inks has one
                self.out.weight[channel, colour, row, column] = 1.0


def _check(
    half: int, blocks: Sequence[int], kernels: Mapping[str, Sequence[int]], photo: int
) -> None:
    if len(blocks) != 3 or min(blocks) < 0:
        raise DistillError(f"decoder.build.blocks={list(blocks)}: three numbers, 0 or more each")
    if half < 4 * photo:
        raise DistillError(f"decoder.build.half={half}: at least {4 * photo}, the photo's patches")
    if len(kernels["kernel"]) != 3:
        listed = list(kernels["kernel"])
        raise DistillError(f"decoder.build.kernel={listed}: one odd number, or three of them")
    for name, sides in kernels.items():
        for side in sides:
            if side % 2 == 0:
                raise DistillError(f"decoder.build.{name}={side}: must be odd")
