"""What a student knows of the whole picture: statistics of a thumbnail, as gains and biases.

A teacher that normalises over the whole picture colours every part by all of it. A convolutional
student sees a part: its colours drift as pictures grow beyond those it learnt from. Here the mean
and the mean absolute deviation of the encoder's deepest features and of the colours, over a
thumbnail of the whole picture, scale and shift the decoder's sums channel by channel (FiLM, Perez
et al. 2018, conditioned on the picture itself).
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

THUMBNAIL = 256  # pixels a side: with 128 it is 0.3 dB farther from the teacher
SUMMARY = 64  # numbers that a picture is summarised in

Adapt = Callable[[Tensor], Tensor]


def unchanged(x: Tensor) -> Tensor:
    """What a decoder adapts its sums by where nothing of the whole picture is known."""
    return x


def thumbnail_of(photo: Tensor) -> Tensor:
    """(N, C, H, W) as (N, C, 256, 256), bilinear with antialiasing, proportions ignored."""
    if photo.shape[-2:] == (THUMBNAIL, THUMBNAIL):
        return photo
    size = (THUMBNAIL, THUMBNAIL)
    return F.interpolate(photo, size, mode="bilinear", antialias=True, align_corners=False)


class GlobalStatistics(nn.Module):
    """A thumbnail (N, 3, 256, 256) and its deepest features to a summary (N, 64, 1, 1).

    `deepest` is the number of channels of those features, `adapted` that of each of the decoder's
    sums. `adapting` gives what scales and shifts them in this order; untrained it changes nothing.
    All of it but pooling exports in the strict operators.
    """

    average: Tensor

    def __init__(self, deepest: int, adapted: Sequence[int]) -> None:
        super().__init__()
        # Means of 4×4 pixels by a convolution: no phone lacks it, and the rest is 16 times cheaper.
        self.register_buffer("average", torch.full((3, 1, 4, 4), 1 / 16), persistent=False)
        self.feature_mean = nn.Conv2d(deepest, SUMMARY, 1)
        self.feature_deviation = nn.Conv2d(deepest, SUMMARY, 1, bias=False)
        self.colour_mean = nn.Conv2d(3, SUMMARY, 1, bias=False)
        self.colour_deviation = nn.Conv2d(3, SUMMARY, 1, bias=False)
        self.gains = nn.ModuleList(_constant(channels, 1.0) for channels in adapted)
        self.biases = nn.ModuleList(_constant(channels, 0.0) for channels in adapted)

    def forward(self, thumbnail: Tensor, features: Tensor) -> Tensor:
        feature_mean, feature_deviation = _mean_and_deviation(features)
        colours = F.conv2d(thumbnail, self.average, stride=4, groups=3)
        colour_mean, colour_deviation = _mean_and_deviation(colours)
        return F.relu(
            self.feature_mean(feature_mean)
            + self.feature_deviation(feature_deviation)
            + self.colour_mean(colour_mean)
            + self.colour_deviation(colour_deviation)
        )

    def adapting(self, summary: Tensor) -> Adapt:
        """A function of the decoder's sums, called once for each of them in their order."""
        layers = zip(self.gains, self.biases, strict=True)

        def adapt(x: Tensor) -> Tensor:
            gain, bias = next(layers)
            return x * gain(summary) + bias(summary)

        return adapt


def _mean_and_deviation(x: Tensor) -> tuple[Tensor, Tensor]:
    """Of each channel over the picture, (N, C, 1, 1) both; the deviation is mean |x − mean|.

    That is twice the mean of what lies above the mean: no phone lacks the operators of that.
    """
    mean = F.adaptive_avg_pool2d(x, 1)
    return mean, 2.0 * F.adaptive_avg_pool2d(F.relu(x + -1.0 * mean), 1)


def _constant(channels: int, value: float) -> nn.Conv2d:
    """1×1 from a summary that gives `value` until it is trained."""
    layer = nn.Conv2d(SUMMARY, channels, 1)
    nn.init.zeros_(layer.weight)
    nn.init.constant_(layer.bias, value)  # type: ignore[arg-type]
    return layer
