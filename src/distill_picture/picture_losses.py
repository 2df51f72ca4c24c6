"""The terms of a style that is one picture: its statistics at several sizes, colours, smoothness.

Johnson, Alahi and Li 2016, with the Gram matrices of Gatys et al. 2016 taken around the style's own
means (Novak and Nikulin 2016), at several sizes of the picture (Snelgrove 2017): shallow layers
then see wide strokes, which deeper ones would at many times the cost.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from distill.core.arrays import over_white
from distill.core.images import luma
from distill.losses.differences import Differences
from distill.losses.feature_distance import FeatureDistance
from distill.losses.term import LossTerm
from distill.losses.vgg import Backbone, vgg_features

LAYERS = ("relu1_1", "relu2_1", "relu3_1")
TINY = 1e-8  # of a layer that sees nothing in the style
COLOUR = 20.0  # weight of the colours that are kept: they differ by hundredths


class PictureStyle(LossTerm):
    """Mean over sizes and layers of ‖G − A‖² / ‖A‖², G of the student's picture, A of the style's.

    Each is C × C: the mean product of two channels' activations, less the style's means. So it is 0
    for the style's own picture, and of the order of 1 for others. `sizes` are halvings of the
    picture. With `keep_colour` luminance alone is compared, and the mean difference of the colours
    from the photo's, times 20, is added.

    `learn` comes first. In training random crops of `side` pixels are read at each size: time goes
    with their area. Each must have the style's statistics by itself, which in a small one strokes
    of one direction cannot have.
    """

    def __init__(
        self,
        backbone: Backbone = "auto",
        sizes: Sequence[int] = (0, 1, 2),
        side: int = 192,
        keep_colour: bool = False,
    ) -> None:
        super().__init__()
        self.vgg = vgg_features(backbone, LAYERS, "style").to(memory_format=torch.channels_last)
        self.sizes, self.side, self.keep_colour = tuple(sizes), side, keep_colour
        self.statistics: list[dict[str, tuple[Tensor, Tensor]]] = []

    @torch.no_grad()
    def learn(self, pictures: Sequence[Tensor], weights: Sequence[float] | None = None) -> None:
        """Take the statistics of style pictures (3, H, W) in [0, 1], mixed by their weights; None:
        alike.
        """
        weights = weights or [1.0] * len(pictures)
        self.statistics = []
        for size in self.sizes:
            features = [self.vgg(self._at_scale(each[None], size)) for each in pictures]
            statistics = {}
            for layer in LAYERS:
                parts = [
                    (w / sum(weights), s[layer]) for w, s in zip(weights, features, strict=True)
                ]
                mean = torch.stack([w * f.mean((0, 2, 3)) for w, f in parts]).sum(0)
                grams = [w * gram_around(f, mean)[0] for w, f in parts]
                statistics[layer] = mean, torch.stack(grams).sum(0)
            self.statistics.append(statistics)

    def forward(self, student: Tensor, target: Tensor) -> Tensor:
        student, ratios = over_white(student), []
        for size, statistics in zip(self.sizes, self.statistics, strict=True):
            view = self._crop(self._at_scale(student, size))
            with half_precision(view):
                features = self.vgg(view)
            for layer, both in statistics.items():
                mean, gram = (each.to(view.device) for each in both)
                off = gram_around(features[layer].float(), mean) - gram
                ratios.append(off.square().sum((1, 2)).mean() / (gram.square().sum() + TINY))
        loss = torch.stack(ratios).mean()
        return loss + COLOUR * chroma_distance(student, target) if self.keep_colour else loss

    def _at_scale(self, picture: Tensor, halvings: int) -> Tensor:
        if halvings:
            picture = F.avg_pool2d(picture, 2**halvings)
        grey = luma(picture).expand_as(picture) if self.keep_colour else picture
        return grey.contiguous(memory_format=torch.channels_last)

    def _crop(self, picture: Tensor) -> Tensor:
        height, width = picture.shape[-2:]
        if not self.training or min(height, width) <= self.side:
            return picture
        top, left = (int(torch.randint(n - self.side + 1, ())) for n in (height, width))
        return picture[..., top : top + self.side, left : left + self.side]


class PictureContent(FeatureDistance):
    """The same as its base class, on what processors do fast."""

    term = "content"

    def forward(self, student: Tensor, target: Tensor) -> Tensor:
        with half_precision(student):
            return super().forward(student, target)


class TotalVariation(Differences):
    """Mean step from pixel to pixel of the student's picture (Johnson et al. 2016)."""

    by_pixel = False  # of the student's alone

    def forward(self, student: Tensor, target: Tensor) -> Tensor:
        return super().forward(student, torch.zeros_like(student))


def gram_around(features: Tensor, mean: Tensor) -> Tensor:
    """Gram matrices (N, C, C) of (N, C, H, W) less a mean (C,), divided by H·W."""
    flat = features.flatten(2) - mean[:, None]
    return flat @ flat.transpose(1, 2) / flat.shape[2]


def chroma_distance(student: Tensor, photo: Tensor) -> Tensor:
    """Mean absolute difference of two pictures' colours, less their luminance."""
    error = student - over_white(photo)
    return (error - luma(error)).abs().mean()


def half_precision(picture: Tensor) -> torch.autocast:
    """bfloat16 for the perceptual network where the processor has it: twice as fast here."""
    kind = picture.device.type
    fast = kind == "cuda" or (kind == "cpu" and torch.cpu._is_avx512_bf16_supported())
    return torch.autocast(kind, torch.bfloat16, enabled=fast)
