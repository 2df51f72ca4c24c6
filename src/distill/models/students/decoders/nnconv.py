"""`nnconv`: the paper's released network, plain 3×3 convolutions between nearest ×2 steps."""

from collections.abc import Sequence

from torch import Tensor, nn

from distill.core.errors import DistillError
from distill.models.students.blocks import conv_norm_relu, double
from distill.models.students.global_statistics import Adapt, unchanged


class NNConv(nn.Module):
    """Features of strides 1 … 32 (the photo first, unused) to a picture in [0, 1].

    1×1 from the deepest feature, then at each step ×2, add the skip, convolve 3×3. With the
    width-0.5 encoder: 80→48→16→16→8→4→3, 373,351 parameters and 125.3 M MACs in all at 256².
    """

    def __init__(
        self,
        channels: Sequence[int],
        strides: Sequence[int],
        out_channels: int = 3,
        narrow: int = 4,
    ) -> None:
        super().__init__()
        if len(channels) != 6:
            raise DistillError(
                f"decoder=nnconv: takes features down to stride 32, not to {strides[-1]}; set "
                "encoder.stages=5"
            )
        _, half, quarter, eighth, sixteenth, deepest = channels
        self.deep = conv_norm_relu(deepest, sixteenth, 1)
        self.up16 = conv_norm_relu(sixteenth, eighth, 3)
        self.up8 = conv_norm_relu(eighth, quarter, 3)
        self.up4 = conv_norm_relu(quarter, half, 3)
        self.up2 = conv_norm_relu(half, narrow, 3)
        self.out = nn.Conv2d(narrow, out_channels, 3, padding=1)
        self.activation: nn.Module = nn.Sigmoid()
        self.adapted = (sixteenth, eighth, quarter, half, out_channels)

    def forward(self, features: list[Tensor], adapt: Adapt = unchanged) -> Tensor:
        _, half, quarter, eighth, sixteenth, deepest = features
        x = self.up16(adapt(double(self.deep(deepest)) + sixteenth))
        x = self.up8(adapt(double(x) + eighth))
        x = self.up4(adapt(double(x) + quarter))
        x = self.up2(adapt(double(x) + half))
        return self.activation(adapt(self.out(double(x))))
