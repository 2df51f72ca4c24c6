"""`residual`: adds to the photo, so that its output is a picture after a minute of training."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from distill.models.students.blocks import conv_norm_relu, double, separable
from distill.models.students.global_statistics import Adapt, unchanged


class Residual(nn.Module):
    """Features of strides 1 … 32, the photo first, to a picture in [0, 1].

    Cheap separable steps bring the features up to half size; at full size one 3×3 layer reads the
    photo itself, meets them, and writes logits that are added to a 1×1 of the photo. That 1×1
    starts as sigmoid(4x - 2), close to the photo, so training begins at a photo and not at grey.
    """

    def __init__(
        self, channels: Sequence[int], strides: Sequence[int], out_channels: int = 3, fine: int = 5
    ) -> None:
        super().__init__()
        steps = channels[:0:-1]
        self.steps = nn.ModuleList(separable(a, b, 3) for a, b in pairwise(steps))
        self.meet = separable(steps[-1], fine, 3)
        self.fine = conv_norm_relu(channels[0], fine, 3)
        self.out = nn.Conv2d(fine, out_channels, 3, padding=1)
        self.photo = nn.Conv2d(channels[0], out_channels, 1)
        self.activation: nn.Module = nn.Sigmoid()
        self.adapted = (*steps[1:], out_channels)
        self._start_at_the_photo()

    def forward(self, features: list[Tensor], adapt: Adapt = unchanged) -> Tensor:
        photo, *skips, x = features
        for step in self.steps:
            x = adapt(double(step(x)) + skips.pop())
        x = double(self.meet(x)) + self.fine(photo)
        return self.activation(adapt(self.out(x) + self.photo(photo)))

    @torch.no_grad()
    def _start_at_the_photo(self) -> None:
        assert self.photo.bias is not None
        nn.init.zeros_(self.photo.weight)
        nn.init.constant_(self.photo.bias, -2.0)
        for i in range(min(self.photo.weight.shape[:2])):
            self.photo.weight[i, i] = 4.0
        if self.photo.out_channels == 4:
            self.photo.bias[3] = 4.0  # opaque
        self.out.weight.mul_(0.1)
