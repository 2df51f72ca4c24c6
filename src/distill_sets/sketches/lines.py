"""The lines of an outline: edges by Canny or by HED, a network, and what a pen makes of them."""

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt
from skimage.draw import line
from skimage.feature import canny
from skimage.filters import gaussian
from skimage.measure import label
from skimage.morphology import skeletonize
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.functional import max_pool2d, pad

from distill.core.images import REC_601
from distill.core.weights import WeightsFile
from distill_sets.sketches.framing import Spot

Lines = NDArray[np.bool_]  # (H, W), one pixel wide

SOFT = 1.5  # pixels
RIM = 32  # pixels around what a network sees, where its zeros beyond look like edges

# In distances between the eyes.
EYE = 0.2  # radius of an eye's circle
NOSE = 0.3  # side of the nose's triangle
EYE_ROOM, NOSE_ROOM = 0.3, 0.3  # radius around each in which there is no other line


def canny_lines(picture: Tensor, sigma: float, low: float, high: float, inside: Tensor) -> Lines:
    """Canny's edges of a (C, H, W) picture: at least `low` steep, and joined to one of `high`.

    `sigma` is the blur in pixels; Sobel's kernel counts, to which a step from black to white is
    8 / (sigma √2π) steep. `inside` (1, H, W) is 0 where there is no picture: its border is no edge.
    """
    grey = picture.mean(0) if len(picture) != 3 else torch.einsum(
        "chw,c->hw", picture, torch.tensor(REC_601)
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


def long_ones(lines: Lines, least: int) -> Lines:
    """The lines of at least so many pixels; pixels that touch, also by a corner, are one line."""
    parts = label(lines, connectivity=2)
    lengths = np.bincount(parts.ravel())
    lengths[0] = 0
    return (lengths >= max(least, 1))[parts]


def inked(lines: Lines, width: float) -> NDArray[np.float32]:
    """Strokes `width` pixels wide around the lines: 0 where there is ink, 1 where there is none.

    Their rims are a pixel soft, as those of a drawing program.
    """
    if not lines.any():
        return np.ones(lines.shape, np.float32)
    away = distance_transform_edt(~lines)
    return np.clip(away - width / 2 + 0.5, 0, 1).astype(np.float32)


def cleared(lines: Lines, left: Spot, right: Spot, nose: Spot) -> Lines:
    """Without what lies where the marks of eyes and nose will be."""
    eyes = math.dist(left, right)
    rows, columns = np.ogrid[: lines.shape[0], : lines.shape[1]]
    clear = lines.copy()
    for (x, y), room in ((left, EYE_ROOM), (right, EYE_ROOM), (nose, NOSE_ROOM)):
        clear &= np.hypot(columns + 0.5 - x, rows + 0.5 - y) > room * eyes
    return clear


def marked(lines: Lines, left: Spot, right: Spot, nose: Spot) -> Lines:
    """With circles at the eyes and a triangle, its tip below, at the nose."""
    eyes = math.dist(left, right)
    half, high = NOSE * eyes / 2, NOSE * eyes * math.sqrt(3) / 4
    triangle = [(-half, -high), (half, -high), (0.0, high)]
    page = lines.copy()
    _closed(page, [(nose[0] + x, nose[1] + y) for x, y in triangle])
    turns, radius = np.linspace(0, 2 * np.pi, 64, endpoint=False), EYE * eyes
    for x, y in (left, right):
        _closed(page, [(x + radius * math.cos(t), y + radius * math.sin(t)) for t in turns])
    return page


def _closed(page: Lines, corners: list[Spot]) -> None:
    """Add the closed line through the corners; what lies outside of the page is left out."""
    for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1], strict=True):
        rows, columns = line(*(math.floor(v) for v in (y0, x0, y1, x1)))
        inside = (rows >= 0) & (rows < page.shape[0])
        inside &= (columns >= 0) & (columns < page.shape[1])
        page[rows[inside], columns[inside]] = True


# The copy that ControlNet's authors keep: its hash is published, that of the port's file is not.
HED_FILE = WeightsFile(
    "network-bsds500.pth",
    "https://huggingface.co/lllyasviel/ControlNet/resolve/main/annotator/ckpts/network-bsds500.pth",
    sha256="58a858782f5fa3e0ca3dc92e7a1a609add93987d77be3dfa54f8f8419d881a94",
)
HED_PORT = WeightsFile(
    "network-bsds500.pytorch",
    "http://content.sniklaus.com/github/pytorch-hed/network-bsds500.pytorch",
)
MEAN = (104.00698793, 116.66876762, 122.67891434)  # of blue, green and red, 0 to 255
STAGES = {  # of VGG16: channels in and out, convolutions
    "One": (3, 64, 2),
    "Two": (64, 128, 2),
    "Thr": (128, 256, 3),
    "Fou": (256, 512, 3),
    "Fiv": (512, 512, 3),
}


class HED(nn.Module):
    """RGB (N, 3, H, W) in [0, 1] to the probability of an edge, (N, 1, H, W).

    Holistically nested edge detection (Xie, Tu 2015): VGG16 with an edge map at each stage. The
    weights are those of the public PyTorch port (Niklaus 2018, `pytorch-hed`), converted from the
    authors' own, trained on BSDS500; modules are named as the tensors in that file.
    """

    def __init__(self) -> None:
        super().__init__()
        for name, (channels, width, count) in STAGES.items():
            layers: list[nn.Module] = [] if name == "One" else [nn.MaxPool2d(2)]
            for i in range(count):
                layers += [nn.Conv2d(width if i else channels, width, 3, padding=1), nn.ReLU()]
            setattr(self, f"moduleVgg{name}", nn.Sequential(*layers))
            setattr(self, f"moduleScore{name}", nn.Conv2d(width, 1, 1))
        self.moduleCombine = nn.Sequential(nn.Conv2d(len(STAGES), 1, 1), nn.Sigmoid())

    def forward(self, picture: Tensor) -> Tensor:
        mean = torch.tensor(MEAN, device=picture.device, dtype=picture.dtype)
        x = picture.flip(1) * 255 - mean[None, :, None, None]
        scores = []
        for name in STAGES:
            x = getattr(self, f"moduleVgg{name}")(x)
            score = getattr(self, f"moduleScore{name}")(x)
            scores.append(F.interpolate(score, picture.shape[-2:], mode="bilinear"))
        return self.moduleCombine(torch.cat(scores, 1))
