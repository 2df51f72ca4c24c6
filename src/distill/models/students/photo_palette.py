"""Inks that each photo chooses: k-means over the colours of its thumbnail, learnt end to end.

Lloyd's iterations (1982) from colours far from each other are matrix products and softmaxes, so
that they train with the network and run on phones. A small network first moves the colours, by the
tones of the whole thumbnail, to where a teacher compares them; another one prints the centres.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from distill.models.students.global_statistics import THUMBNAIL

SIDE = 32  # of the grid of colours
POINTS = SIDE * SIDE
LEVELS = 16  # of lightness, at which the share of lighter colours is counted
HIDDEN = 48
ITERATIONS = 10
HARD = 60.0  # logits per squared distance to a centre; harder, rounding errors grow
FLAT = 2e-4  # squared distance in a photo of as many colours as inks
FARTHEST = 10000.0  # the same for the colour that is farthest from all centres


class PhotoPalette(nn.Module):
    """Centres and inks (N, `count`, 3) of a thumbnail (N, 3, 256, 256), as (N, `numbers`, 1, 1).

    Before them is the mean squared distance of the colours to the nearest centre: the narrower a
    photo's colours, the nearer its inks are to each other.
    Untrained, the centres are those of the photo's own colours, and the inks nearly the same.
    """

    average: Tensor
    around: Tensor
    light: Tensor
    levels: Tensor

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count, self.numbers = count, 1 + 6 * count
        step = THUMBNAIL // SIDE
        for name, value in (
            ("average", torch.full((3, 1, step, step), 1 / step**2)),
            ("around", torch.full((3, 1, 4, 4), 1 / 16)),
            ("light", torch.tensor([0.3, 0.59, 0.11]).view(1, 3, 1, 1).repeat(LEVELS, 1, 1, 1)),
            ("levels", torch.linspace(0.03, 0.97, LEVELS)),
        ):
            self.register_buffer(name, value, persistent=False)
        self.colour = nn.Conv2d(3, HIDDEN, 1)
        self.neighbourhood = nn.Conv2d(3, HIDDEN, 1, bias=False)
        self.mean = nn.Conv2d(3, HIDDEN, 1, bias=False)
        self.tones = nn.Conv2d(LEVELS, HIDDEN, 1, bias=False)
        self.move = nn.Sequential(
            nn.ReLU(), nn.Conv2d(HIDDEN, HIDDEN, 1), nn.ReLU(), nn.Conv2d(HIDDEN, 3, 1)
        )
        self.print = nn.Sequential(
            nn.Linear(3, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
            nn.Linear(HIDDEN, 3),
        )  # fmt: skip
        for layer in (self.move[-1], self.print[-1]):
            nn.init.zeros_(layer.weight)  # type: ignore[arg-type]
            nn.init.zeros_(layer.bias)  # type: ignore[arg-type]

    def forward(self, thumbnail: Tensor) -> Tensor:
        colours = F.conv2d(thumbnail, self.average, stride=self.average.shape[-1], groups=3)
        points = self.points(colours).view(-1, 3, POINTS)  # constants: files have no Shape
        colours = colours.view(-1, 3, POINTS)
        centres, shares = self.centres(points)
        near = 2.0 * centres @ points - centres.square().sum(2, keepdim=True)
        away = points.square().sum(1) + -1.0 * near.amax(1)
        spread = away.sum(1, keepdim=True) / POINTS + FLAT
        inks = 4.0 * (shares @ colours.transpose(1, 2) - 0.5) + self.print(centres)
        palette = torch.cat([centres, torch.sigmoid(inks)], 1)
        return torch.cat([spread, palette.view(-1, self.numbers - 1)], 1)[..., None, None]

    def points(self, colours: Tensor) -> Tensor:
        """Colours (N, 3, 32, 32) in [0, 1], moved to where the teacher compares them."""
        around = F.conv2d(colours, self.around, stride=4, groups=3)
        lighter = torch.sigmoid(40.0 * F.conv2d(colours, self.light, -1.0 * self.levels))
        hidden = (
            self.colour(colours)
            + F.interpolate(self.neighbourhood(around), scale_factor=4.0, mode="nearest")
            + self.mean(F.adaptive_avg_pool2d(colours, 1))
            + self.tones(F.adaptive_avg_pool2d(lighter, 1))
        )
        return colours + self.move(hidden)

    def centres(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Of points (N, 3, 1024), the centres (N, K, 3) and their shares (N, K, 1024), sum 1."""
        centres = points.sum(2, keepdim=True).transpose(1, 2) / POINTS
        nearest = (points - centres.transpose(1, 2)).square().sum(1, keepdim=True)
        for _ in range(self.count - 1):
            farthest = torch.softmax(FARTHEST * nearest, 2) @ points.transpose(1, 2)
            centres = torch.cat([centres, farthest], 1)
            away = (points - farthest.transpose(1, 2)).square().sum(1, keepdim=True)
            nearest = nearest + -1.0 * F.relu(nearest + -1.0 * away)  # the smaller of both
        for _ in range(ITERATIONS):
            near = 2.0 * centres @ points - centres.square().sum(2, keepdim=True)
            members = torch.softmax(HARD * near, 1) + 1e-6
            shares = members / members.sum(2, keepdim=True)
            centres = shares @ points.transpose(1, 2)
        return centres, shares
