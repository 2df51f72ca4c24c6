"""The student's encoder: MobileNetV2 (Sandler et al. 2018) up to block 16, with ReLU for ReLU6."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torchvision
from torch import Tensor, nn

from distill.core import weights as weights_files
from distill.core.errors import DistillError
from distill.core.images import IMAGENET_MEAN, IMAGENET_STD
from distill.core.state_dicts import load_tensors
from distill.core.weights import WeightsFile

TAPS = (1, 3, 6, 13)  # blocks whose outputs feed the skips: strides 2, 4, 8, 16
SHAPE = (  # expansion, channels, blocks, stride of the first one: Table 2 of the paper
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
BLOCKS = {5: 17, 4: 14}  # of torchvision's features by stages: the last has stride 32 or 16
ADDING = (3, 5, 6, 8, 9, 10, 12, 13, 15, 16)  # blocks that add to what they are given
NARROWEST, WIDEST = 0.1, 1.0  # the widest that there are weights of
MULTIPLES = (8, 16)


@dataclass(frozen=True)
class Scaling:
    """What a pretrained network expects of a picture in [0, 1]: x·scale + shift, per channel."""

    scale: tuple[float, ...]
    shift: tuple[float, ...]


IMAGENET = Scaling(
    tuple(1 / std for std in IMAGENET_STD),
    tuple(-mean / std for mean, std in zip(IMAGENET_MEAN, IMAGENET_STD, strict=True)),
)
SYMMETRIC = Scaling((2.0,) * 3, (-1.0,) * 3)

# Full width, sliced to what is asked for. The first two are torchvision's own releases.
FULL_WIDTH = {
    WeightsFile(
        "mobilenet_v2-7ebf99e0.pth",
        "https://download.pytorch.org/models/mobilenet_v2-7ebf99e0.pth",
        sha256="7ebf99e0",
    ): IMAGENET,
    WeightsFile(
        "mobilenet_v2-b0353104.pth",
        "https://download.pytorch.org/models/mobilenet_v2-b0353104.pth",
        sha256="b0353104",
    ): IMAGENET,
    WeightsFile("mobilenet_v2_100.safetensors"): SYMMETRIC,
}


class MobileNetV2Encoder(nn.Module):
    """(N, 3, H, W) RGB in [0, 1] to a list of features, the photo itself first.

    Strides 1, 2, 4, 8, 16, 32; `channels` and `strides` describe the list for a decoder. The sides
    must divide by 32. `width` is from 0.1 to 1.0; channels are multiples of `multiple`, 8 or 16: on
    processors with vectors of 16 floats a layer of 8 channels takes as long as one of 16, or more.
    `weights` is `imagenet` (weights of this width where a file is available, else full-width ones
    sliced, else random with a warning), `none` or a path to a file with torchvision's names.
    `without` names blocks to leave out, of those that only add to their input (ADDING). `stages`
    are the halvings: of 4 the last one, blocks 14 to 16, is left out, and the list ends at stride
    16. `expansion` is how many times wider blocks from 2 on are inside than what they are given, 2
    to 6: one number, or five, for blocks 2 and 3, 4 to 6, 7 to 10, 11 to 13 and 14 to 16.
    """

    def __init__(
        self,
        width: float = 0.5,
        weights: str = "imagenet",
        download: bool = True,
        without: Sequence[int] = (),
        stages: int = 5,
        expansion: int | Sequence[int] = 6,
        multiple: int = 8,
    ) -> None:
        super().__init__()
        if not NARROWEST <= width <= WIDEST:
            raise DistillError(f"encoder.width={width}: from {NARROWEST} to {WIDEST}")
        if stages not in BLOCKS:
            raise DistillError(f"encoder.stages={stages}: 5, or 4 without the last one")
        factors = 5 * [expansion] if isinstance(expansion, int) else [*expansion]
        if len(factors) != 5 or not 2 <= min(factors) <= max(factors) <= 6:
            raise DistillError(
                f"encoder.expansion={expansion}: from 2 to 6, as the weights have it, one or five"
            )
        if multiple not in MULTIPLES:
            raise DistillError(f"encoder.multiple={multiple}: 8, or 16 for wide vector units")
        self.width, self.expansion, self.multiple = width, expansion, multiple
        shape = [
            [factor, *rest] for factor, (_, *rest) in zip([1, *factors, 6], SHAPE, strict=True)
        ]
        full = torchvision.models.mobilenet_v2(
            weights=None, width_mult=width, inverted_residual_setting=shape, round_nearest=multiple
        )
        self.blocks = nn.Sequential(*full.features[: BLOCKS[stages]])
        _relu_for_relu6(self.blocks)
        self._taps = (*TAPS[: stages - 1], BLOCKS[stages] - 1)
        norms = [[m for m in b.modules() if isinstance(m, nn.BatchNorm2d)] for b in self.blocks]
        self.channels = (3, *(norms[i][-1].num_features for i in self._taps))
        self.strides = tuple(2**i for i in range(stages + 1))
        for number in without:
            if number in ADDING and number >= len(self.blocks):
                continue  # its stage is left out as a whole
            block = self.blocks[number] if 0 <= number < len(self.blocks) else None
            if not getattr(block, "use_res_connect", False):
                raise DistillError(
                    f"encoder.without={list(without)}: block {number} cannot be left out; "
                    f"allowed: {', '.join(map(str, ADDING))}"
                )
            self.blocks[number] = nn.Identity()
        self._initialise(weights, download)

    def forward(self, photo: Tensor) -> list[Tensor]:
        features, x = [photo], photo
        for number, block in enumerate(self.blocks):
            x = block(x)
            if number in self._taps:
                features.append(x)
        return features

    def _initialise(self, weights: str, download: bool) -> None:
        if weights == "none":
            return
        if weights != "imagenet":
            path = weights_files.find(WeightsFile(Path(weights).name), weights, "encoder.weights")
            self.load(path, IMAGENET if path.suffix == ".pth" else SYMMETRIC)
        elif source := self._imagenet(download):
            self.load(*source)
        else:
            warnings.warn(
                "no ImageNet weights for the encoder (looked in DISTILL_WEIGHTS, the cache and at "
                "torchvision's address): it starts from random weights and will learn more slowly",
                stacklevel=2,
            )

    def _imagenet(self, download: bool) -> tuple[Path, Scaling] | None:
        percent = round(100 * self.width)
        sliced = WeightsFile(f"mobilenet_v2_{percent:03d}_features.safetensors")
        # A file's name has whole percents (of 0.504 it would be that of another width) and means
        # channels in multiples of 8.
        exact = percent / 100 == self.width and self.multiple == 8
        files = ({sliced: SYMMETRIC} if exact else {}) | FULL_WIDTH
        for may_download in (False, download):
            for file, scaling in files.items():
                if path := weights_files.find_or_none(file, download=may_download):
                    return path, scaling
        return None

    def load(self, path: Path, scaling: Scaling) -> None:
        """Load a MobileNetV2 file of this width or a larger one (sliced), for inputs in [0, 1]."""
        state = {k.removeprefix("features."): v for k, v in load_tensors(path).items()}
        target = self.blocks.state_dict()
        gaps = sorted(target.keys() - state.keys())
        if gaps:
            raise DistillError(f"{path}: no MobileNetV2 in torchvision's names; lacks {gaps[0]}")
        for name, tensor in target.items():
            have = state[name].shape
            if any(h < w for h, w in zip(have, tensor.shape, strict=True)):
                raise DistillError(
                    f"encoder weights of shape {tuple(have)} are too narrow for "
                    f"{tuple(tensor.shape)} (encoder.width, encoder.multiple)"
                )
            state[name] = state[name][tuple(slice(0, n) for n in tensor.shape)].clone()
        self.blocks.load_state_dict({name: state[name] for name in target})
        conv, norm, _ = self.blocks[0].children()
        assert isinstance(conv, nn.Conv2d)
        assert isinstance(norm, nn.BatchNorm2d)
        fold_scaling(conv, norm, scaling)


def fold_scaling(conv: nn.Conv2d, norm: nn.BatchNorm2d, scaling: Scaling) -> None:
    """Rewrite conv and norm in place: norm(conv(x)) becomes what norm(conv(x·scale + shift)) was.

    Exact but for the border, where the convolution pads with zeros of the new range; done once,
    before training, so that the exported graph needs no extra operator.
    """
    scale, shift = torch.tensor(scaling.scale), torch.tensor(scaling.shift)
    assert norm.running_mean is not None
    with torch.no_grad():
        norm.running_mean -= (conv.weight * shift[:, None, None]).sum((1, 2, 3))
        conv.weight *= scale[:, None, None]


def _relu_for_relu6(module: nn.Module) -> None:
    for name, child in module.named_children():
        if isinstance(child, nn.ReLU6):
            setattr(module, name, nn.ReLU())
        _relu_for_relu6(child)
