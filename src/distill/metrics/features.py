"""Feature networks for Fréchet and kernel distances: pictures to vectors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
import pytorch_fid.inception as fid_inception
import torch
import torchvision
from numpy.typing import NDArray
from torch import Tensor, nn

from distill import weights as weights_files
from distill.progress import bar
from distill.weights import WeightsFile

FeatureName = Literal["inception", "mobilenet", "none"]

INCEPTION = WeightsFile(
    "pt_inception-2015-12-05-6726825d.pth",
    fid_inception.FID_WEIGHTS_URL,
    sha256="6726825d",
)
MOBILENET = WeightsFile(
    "mobilenet_v2_100.safetensors",
    sha256="8da30642b6d52a18d0d1c730e687a108d6d05de902c5def89146122fc16fb5f7",
)


class FeatureNetwork(nn.Module):
    """(N, 3, H, W) RGB in [0, 1] to (N, d) features.

    `title` and `resize` go into every result, `fid` and `kid` name its rows: only Inception's
    distances may be called FID.
    """

    title: str
    fid: str
    kid: str
    resize: str

    @torch.inference_mode()
    def features(self, batches: Iterable[Tensor], total: int, what: str) -> NDArray[np.float64]:
        """Features of all batches, (n, d) in float64, with a progress bar over `total` pictures."""
        parts = []
        with bar(total, " pictures", f"features of {what}", leave=False) as progress:
            for batch in batches:
                parts.append(self(batch).double().cpu().numpy())
                progress.update(len(batch))
        return np.concatenate(parts)


class Inception(FeatureNetwork):
    """pytorch-fid's Inception with its 2,048 pool features and its own preprocessing."""

    title = "Inception (pytorch-fid, 2,048 features): FID"
    fid, kid = "FID", "KID ×1000"
    resize = "bilinear to 299×299 inside the network, not antialiased, as pytorch-fid does"

    def __init__(self, state: dict[str, Tensor]) -> None:
        super().__init__()
        # pytorch-fid has no way to name a local file: lend it our loader while it builds.
        original = fid_inception.load_state_dict_from_url
        fid_inception.load_state_dict_from_url = lambda *_args, **_kwargs: state
        try:
            self.net = fid_inception.InceptionV3(
                [fid_inception.InceptionV3.BLOCK_INDEX_BY_DIM[2048]]
            )
        finally:
            fid_inception.load_state_dict_from_url = original
        self.requires_grad_(False).eval()

    def forward(self, pictures: Tensor) -> Tensor:
        return self.net(pictures)[0].flatten(1)


class MobileNet(FeatureNetwork):
    """MobileNetV2 of width 1.0, 1,280 pooled features; a Fréchet distance, but not an FID."""

    title = "MobileNetV2-1.0 (1,280 features): NOT an Inception FID"
    fid, kid = "Fréchet (MobileNetV2)", "KID (MobileNetV2) ×1000"
    resize = "bilinear to 224×224, antialiased"

    def __init__(self, state: dict[str, Tensor]) -> None:
        super().__init__()
        self.net = torchvision.models.mobilenet_v2(weights=None)
        self.net.load_state_dict(state)
        self.requires_grad_(False).eval()

    def forward(self, pictures: Tensor) -> Tensor:
        x = nn.functional.interpolate(
            pictures * 2 - 1, size=(224, 224), mode="bilinear", antialias=True
        )
        return self.net.features(x).mean((2, 3))


def feature_network(name: FeatureName) -> FeatureNetwork | None:
    """The network by name, None for `none`. Raises DistillError when its weights are missing."""
    if name == "none":
        return None
    if name == "mobilenet":
        return MobileNet(weights_files.load_tensors(weights_files.find(MOBILENET)))
    return Inception(weights_files.load_tensors(weights_files.find(INCEPTION)))
