"""`fastdepth`: depthwise-separable 5×5 modules at low resolution (Wofk et al. 2019)."""

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from distill.core.errors import DistillError
from distill.models.students.blocks import double, separable
from distill.models.students.global_statistics import Adapt, unchanged


class FastDepth(nn.Module):
    """Features of strides 1 … 32 (the photo first, unused) to a picture in [0, 1].

    Each module works before its ×2, where the picture is smallest, and the skip is added after it.
    With the width-0.5 encoder: 80→48→16→16→8→4, then 1×1 to the picture; 112.7 M MACs at 256².
    """

    def __init__(
        self,
        channels: Sequence[int],
        strides: Sequence[int],
        out_channels: int = 3,
        narrow: int = 4,
        kernel: int = 5,
    ) -> None:
        super().__init__()
        if kernel % 2 == 0:
            raise DistillError(f"decoder.build.kernel={kernel}: must be odd")
        steps = [*channels[:0:-1], narrow]
        self.steps = nn.ModuleList(separable(a, b, kernel) for a, b in pairwise(steps))
        self.out = nn.Conv2d(narrow, out_channels, 1)
        self.activation: nn.Module = nn.Sigmoid()
        self.adapted = (*steps[1:-1], out_channels)

    def forward(self, features: list[Tensor], adapt: Adapt = unchanged) -> Tensor:
        *skips, x = features[1:]
        for step in self.steps:
            x = double(step(x))
            if skips:
                x = adapt(x + skips.pop())
        return self.activation(adapt(self.out(x)))
