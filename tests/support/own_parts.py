"""Parts as a user's own package has them, right and wrong ones."""

import os
from os import system  # noqa: F401 # a file must not reach it through here either

import torch
import torch.nn.functional as F
from torch import nn

from distill.losses.term import LossTerm
from distill.metrics.metric import Metric
from distill.models.teachers.teacher import Teacher


class Half(nn.Module):
    """Right: the feature of stride 2 to a picture."""

    def __init__(self, channels, strides, out_channels, width=4):
        super().__init__()
        self.width = width
        self.out = nn.Conv2d(channels[1], out_channels, 1)

    def forward(self, features):
        return torch.sigmoid(F.interpolate(self.out(features[1]), scale_factor=2.0))


class Small(Half):
    def forward(self, features):
        return super().forward(features)[..., ::2, ::2]


class Square(Half):
    """As wide as high, whatever the photo is."""

    def forward(self, features):
        side = features[0].shape[-2]
        return super().forward(features)[..., :side, :side]


class Wide(Half):
    def forward(self, features):
        return 3 * super().forward(features)


class Double(Half):
    def forward(self, features):
        return super().forward(features).double()


class NotFinite(Half):
    def forward(self, features):
        return super().forward(features) * float("nan")


class Failing(Half):
    def forward(self, features):
        raise RuntimeError("no such layer\nin this network")


class Unbuilt(Half):
    def __init__(self, channels, strides, out_channels):
        raise RuntimeError("cannot be made")


class Plain(nn.Module):
    """Takes nothing of the encoder."""


class Dark(Teacher):
    """Right: half as light; with `high` out of range."""

    def __init__(self, factor: float = 0.5):
        super().__init__()
        self.factor = factor

    def forward(self, photo):
        return photo * self.factor


class Cropping(Dark):
    def forward(self, photo):
        return photo[..., :32, :32]


class Error(LossTerm):
    def forward(self, student, target):
        return (student - target).square().mean()


class PerPicture(LossTerm):
    def forward(self, student, target):
        return (student - target).square().mean((1, 2, 3))


class Item(LossTerm):
    def forward(self, student, target):
        return torch.tensor((student - target).square().mean().item())


class Flat(LossTerm):
    def forward(self, student, target):
        return (0 * student).sum()


class Infinite(LossTerm):
    def forward(self, student, target):
        return student.mean() / 0


class Broken(LossTerm):
    def forward(self, student, target):
        return student @ target[0, 0, :3]


class Levels(Metric):
    def __call__(self, output, target):
        return 255 * (output - target).abs().mean((1, 2, 3))


class PerRange(Metric):
    """Not finite where all pixels are equal."""

    def __init__(self):
        self.weight = torch.ones((), requires_grad=True)

    def __call__(self, output, target):
        return self.weight * (output - target).mean((1, 2, 3)) / output.std((1, 2, 3))


class Mean(Metric):
    def __call__(self, output, target):
        return (output - target).abs().mean()


half = lambda photo: photo / 2  # noqa: E731
here = os.getcwd
