"""The residual generator of CycleGAN (Zhu et al. 2017), after Johnson et al. 2016."""

from torch import Tensor, nn

from distill.core.errors import DistillError

WIDTH = 64


class ResNetGenerator(nn.Module):
    """(N, `in_channels`, H, W) in [0, 1] to (N, `out_channels`, H, W); H and W divide by 4.

    c7s1-64, d128, d256, `blocks` residual blocks of 256, u128, u64, c7s1-3; InstanceNorm without
    scale and shift; reflection padding. The layers lie as in the authors' PyTorch implementation
    (`model.N`), so its checkpoints load. 9 blocks: 11,378,179 parameters and 49.55 GMACs at 256².

    Raises DistillError for a `size`, the side it is to be trained at, that does not divide by 4.
    """

    multiple = 4

    def __init__(
        self,
        blocks: int = 9,
        width: int = WIDTH,
        size: int = 256,
        in_channels: int = 3,
        out_channels: int = 3,
    ) -> None:
        super().__init__()
        if size % 4:
            raise DistillError(
                f"data.crop_size={size}: this generator needs sides that divide by 4"
            )
        layers: list[nn.Module] = [nn.ReflectionPad2d(3)]
        layers += _unit(nn.Conv2d(in_channels, width, 7), width)
        for _ in range(2):
            layers += _unit(nn.Conv2d(width, 2 * width, 3, 2, 1), 2 * width)
            width *= 2
        layers += [ResidualBlock(width) for _ in range(blocks)]
        for _ in range(2):
            half = nn.ConvTranspose2d(width, width // 2, 3, 2, 1, output_padding=1)
            layers += _unit(half, width // 2)
            width //= 2
        layers += [nn.ReflectionPad2d(3), nn.Conv2d(width, out_channels, 7), nn.Tanh()]
        self.model = nn.Sequential(*layers)

    def forward(self, photo: Tensor) -> Tensor:
        return (self.model(2 * photo - 1) + 1) / 2


class ResidualBlock(nn.Module):
    """x + two 3×3 convolutions of x."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv_block = nn.Sequential(
            nn.ReflectionPad2d(1),
            *_unit(nn.Conv2d(width, width, 3), width),
            nn.ReflectionPad2d(1),
            nn.Conv2d(width, width, 3),
            nn.InstanceNorm2d(width),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv_block(x)


def _unit(convolution: nn.Module, width: int) -> list[nn.Module]:
    return [convolution, nn.InstanceNorm2d(width), nn.ReLU(inplace=True)]
