"""A decoder, an encoder, a head and a teacher."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from distill.models.students.heads import PaletteHead
from distill.models.teachers.teacher import Teacher


class Halves(nn.Module):
    """Features at strides 1, 2 and 4, the photo first."""

    channels, strides = (3, 8, 12), (1, 2, 4)

    def __init__(self) -> None:
        super().__init__()
        self.to_half = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.to_quarter = nn.Conv2d(8, 12, 3, stride=2, padding=1)

    def forward(self, photo: Tensor) -> list[Tensor]:
        half = F.relu(self.to_half(photo))
        return [photo, half, F.relu(self.to_quarter(half))]


class Tiny(nn.Module):
    """The feature of stride 2, `width` channels, and up to the photo's size."""

    def __init__(
        self, channels: Sequence[int], strides: Sequence[int], out_channels: int, width: int = 8
    ) -> None:
        super().__init__()
        self.to_half = nn.Conv2d(channels[1], width, 3, padding=1)
        self.out = nn.Conv2d(width, out_channels, 3, padding=1)

    def forward(self, features: list[Tensor]) -> Tensor:
        half = F.relu(self.to_half(features[1]))
        return torch.sigmoid(self.out(F.interpolate(half, scale_factor=2.0)))


class Print(PaletteHead):
    """Two inks, for any target."""

    def check_target(self, picture: Tensor) -> None:
        pass


class Negative(Teacher):
    """The photo's negative, by `amount`."""

    def __init__(self, amount: float = 1.0) -> None:
        super().__init__()
        self.amount = amount
        self.freeze()

    def settings(self) -> str:
        return f"v1 {self.amount}"

    def forward(self, photo: Tensor) -> Tensor:
        return photo + self.amount * (1 - 2 * photo)
