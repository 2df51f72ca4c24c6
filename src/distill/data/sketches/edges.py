"""Edges of a picture as lines of single pixels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from skimage.feature import canny
from skimage.filters import gaussian
from skimage.morphology import skeletonize
from torch import Tensor
from torch.nn.functional import max_pool2d, pad

Lines = NDArray[np.bool_]  # (H, W)

SOFT = 1.5  # pixels
RIM = 32  # pixels around what a network sees, where its zeros beyond look like edges
GREY = (0.299, 0.587, 0.114)  # luma of ITU-R BT.601


def canny_lines(picture: Tensor, sigma: float, low: float, high: float, inside: Tensor) -> Lines:
    """Canny's edges of a (C, H, W) picture: at least `low` steep, and joined to one of `high`.

    `sigma` is the blur in pixels; Sobel's kernel counts, to which a step from black to white is
    8 / (sigma √2π) steep. `inside` (1, H, W) is 0 where there is no picture: its border is no edge.
    """
    grey = picture.mean(0) if len(picture) != 3 else torch.einsum(
        "chw,c->hw", picture, torch.tensor(GREY)
    )  # fmt: skip
    mask = inside[0].numpy() > 0.5
    return canny(grey.double().numpy(), sigma, low, high, mask=mask, mode="nearest")


def thinned(probability: NDArray[np.float32], threshold: float) -> Lines:
    """The middle lines of what is an edge with at least that probability (H, W).

    Blurred first: every bump of a ridge's rim would become a branch of its middle line.
    """
    return skeletonize(gaussian(probability, SOFT, mode="nearest") >= threshold)


def network_lines(
    picture: Tensor, network: Callable[[Tensor], Tensor], threshold: float, inside: Tensor
) -> Lines:
    """The lines of an edge network, (1, 3, H, W) to probabilities (1, 1, H, W)."""
    wider = pad(picture[None], (RIM,) * 4, mode="replicate")
    with torch.inference_mode():
        probability = network(wider)[0, :, RIM:-RIM, RIM:-RIM]
    near = -max_pool2d(-inside[None], 7, 1, 3)[0]
    return thinned((probability * (near > 0.5))[0].numpy(), threshold)
