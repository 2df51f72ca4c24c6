"""What a style does to a picture, as numbers: which target of a set has another style.

The Gram matrices of VGG features say what textures and colours a picture has (Gatys et al. 2016).
Of a target they say what it shows as well; what the photo has of that is taken off, so what is
left is the change: measured on 70 pairs of hayao, whitebox and toon with 5 of another style among
them, see docs/data.md.
"""

import hashlib
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from distill.losses.style import gram
from distill.losses.vgg import Backbone, VGGFeatures, available_backbone, vgg_features

LAYERS: Mapping[Backbone, tuple[str, ...]] = {
    "vgg19_relu3_1": ("relu1_1", "relu2_1", "relu3_1"),
    "vgg16": ("relu1_2", "relu2_2", "relu3_3"),
}
BLOCK = 256  # values that stand for one layer's Gram matrix

Vector = NDArray[np.float32]


class StyleChange:
    """Two squares, uint8 (n, 3, H, W), to what the second differs in: (n, len(layers) · BLOCK).

    The differences of the square roots of both Gram matrices, layer by layer, `folded` each.
    """

    def __init__(self, vgg: VGGFeatures, layers: tuple[str, ...]) -> None:
        self.vgg, self.layers = vgg, layers

    @property
    def identity(self) -> str:
        """Changes when the network's weights do, or what is read of them."""
        digest = hashlib.sha256(str(self.layers).encode())
        for _, weight in sorted(self.vgg.state_dict().items()):
            digest.update(weight.numpy().tobytes())
        return digest.hexdigest()

    @torch.inference_mode()
    def __call__(self, photos: Tensor, targets: Tensor) -> Vector:
        before, after = (self.vgg(each.float() / 255) for each in (photos, targets))
        parts = []
        for name in self.layers:
            change = gram(after[name]).sqrt() - gram(before[name]).sqrt()  # of ReLUs: none below 0
            parts.append(folded(change.flatten(1)))
        return torch.cat(parts, 1).numpy()


def folded(values: Tensor) -> Tensor:
    """(n, up to 65,536) to (n, BLOCK) by a count sketch (Charikar et al. 2002), which keeps
    distances within some per cent."""
    random, count = torch.Generator().manual_seed(0), values.shape[1]
    place = torch.randint(BLOCK, (count,), generator=random)
    sign = torch.randint(2, (count,), generator=random).float() * 2 - 1
    return torch.zeros(len(values), BLOCK).index_add_(1, place, values * sign)


def style_change() -> StyleChange | None:
    """By the VGG whose weights are available, the smaller file first; None where neither is.

    Nothing is downloaded for it.
    """
    if (backbone := available_backbone()) is None:
        return None
    layers = LAYERS[backbone]
    return StyleChange(vgg_features(backbone, layers, None), layers)


def distances(changes: Vector) -> NDArray[np.float64]:
    """How far each of (n, layers · BLOCK) lies from the set's median, in medians of that: (n,).

    1 is usual. The mean over layers, each measured by itself; 0 where all are alike. NaN for a row
    of NaN, which counts for nothing.
    """
    known = np.isfinite(changes).all(1)
    ratios = np.full(len(changes), np.nan)
    if not known.any():
        return ratios
    blocks = changes[known].reshape(known.sum(), -1, BLOCK).astype(np.float64)
    away = np.linalg.norm(blocks - np.median(blocks, axis=0), axis=2)
    usual = np.median(away, axis=0)
    ratios[known] = (away / np.where(usual > 0, usual, 1.0)).mean(1)
    return ratios
