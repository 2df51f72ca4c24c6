"""Fréchet and kernel distance of held-out pictures at every validation: how far a GAN has come.

The losses of two networks that train against each other do not say it.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
import pytorch_lightning as pl
import torch
from numpy.typing import NDArray
from torch import Tensor
from tqdm.auto import tqdm

from distill.core import weights
from distill.core.arrays import over_white
from distill.core.errors import DistillError, counted
from distill.core.images import to_uint8
from distill.core.weights import WeightsFile
from distill.metrics import frechet
from distill.metrics.features import (
    BATCH,
    INCEPTION,
    MOBILENET,
    FeatureName,
    FeatureNetwork,
    feature_network,
)

Features = NDArray[np.float64]
# By their names in a validation step: a generator's output, its input, the real pictures that the
# output is compared with, and the ending of its metrics' names. Pairs need no input.
PAIRED = (("output", "output", "target", ""),)
UNPAIRED = (("to_b", "a", "b", ""), ("to_a", "b", "a", "_a"))
LEAST = 2  # pictures a side: one has no spread
TITLES = {"output": "output", "to_b": "A to B", "to_a": "B to A"}


class Distance(pl.Callback):
    """Logs val/frechet and val/kid (the kernel distance itself, not ×1000) per validation.

    A validation step gives {output, target}, or {a, to_b, b, to_a} of two unpaired sides, pictures
    (N, 3 or 4, H, W) in [0, 1]; then val/frechet and val/kid are those of to_b against b, and
    val/frechet_a and val/kid_a those of to_a against a; val/frechet_untranslated is that of a
    against b: a generator that gives its input back stays there, whatever its losses. An output
    and its own target are not compared by the kernel distance, which they would pull below zero.
    Pictures are rounded to 8 bits first, as files of them would be. Where the shorter of two
    unpaired sides begins again, its pictures are not counted twice. The real pictures' features
    are computed at the first validation.

    Few pictures bias a Fréchet distance upwards: it compares steps of one run, not runs whose
    held-out pictures differ. For training on one device. Raises DistillError for less than 2
    pictures a side.
    """

    monitor = "val/frechet"

    def __init__(self, network: FeatureNetwork) -> None:
        self.network = network.requires_grad_(False).eval()
        self.real: dict[str, Features] = {}
        self.untranslated: float | None = None
        self._begin()

    @classmethod
    def of(cls, name: FeatureName | Literal["auto"]) -> Self | None:
        """With the network of that name; `auto` is Inception, else MobileNet, if available.

        None for `none`, and, with a line that says so, where auto finds neither. Raises
        DistillError where the weights of a network that was named cannot be had.
        """
        chosen: FeatureName = "none" if name == "auto" else name
        if name == "auto":
            files: dict[FeatureName, WeightsFile] = {"inception": INCEPTION, "mobilenet": MOBILENET}
            chosen = next((n for n, file in files.items() if weights.find_or_none(file)), chosen)
            if chosen == "none":
                print(
                    f"distance=auto: none is logged, neither {INCEPTION.name} nor {MOBILENET.name} "
                    "is available; put one into a folder that DISTILL_WEIGHTS names"
                )
        if chosen == "none":
            return None
        with torch.random.fork_rng(devices=[]):  # a network is born with random weights
            network = feature_network(chosen)
        assert network is not None
        return cls(network)

    @staticmethod
    def check(held_out: int) -> None:
        """Raises DistillError for fewer pictures of a side than a distance can be had of."""
        if held_out < LEAST:
            raise DistillError(
                f"distance: it needs at least {LEAST} held-out pictures of each side, not "
                f"{held_out}; hold out more (data.val_fraction, data.val_limit) or set "
                "distance=none"
            )

    def _begin(self) -> None:
        self._parts: dict[str, list[Features]] = {}
        self._seen: set[tuple[str, bytes]] = set()

    def on_validation_batch_end(
        self, trainer: pl.Trainer, pl_module: Any, outputs: Any, *_rest: object
    ) -> None:
        if trainer.sanity_checking:
            return
        for output, source, real, _ in _sides(outputs):
            self._add(output, _bytes(outputs[output]), self._new(source, _bytes(outputs[source])))
            if real not in self.real:
                pictures = _bytes(outputs[real])
                self._add(real, pictures, self._new(f"real {real}", pictures))

    def _new(self, side: str, pictures: Tensor) -> list[int]:
        """Which pictures of a side are not there yet."""
        if side in ("output", "real target"):
            return list(range(len(pictures)))  # pairs never begin again
        keys = [(side, hashlib.sha256(p.cpu().numpy().tobytes()).digest()) for p in pictures]
        new = [i for i, key in enumerate(keys) if key not in self._seen and key not in keys[:i]]
        self._seen.update(keys)
        return new

    @torch.inference_mode()
    def _add(self, side: str, pictures: Tensor, which: list[int]) -> None:
        self.network.to(pictures.device)
        parts = self._parts.setdefault(side, [])
        with torch.autocast(pictures.device.type, enabled=False):
            for part in pictures[which].split(BATCH) if which else ():
                parts.append(self.network(part.float() / 255).cpu().double().numpy())

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.sanity_checking or not self._parts:
            return
        features = {side: np.concatenate(parts) for side, parts in self._parts.items() if parts}
        self.real |= {r: features[r] for _, _, r, _ in _sides(features) if r not in self.real}
        if self.untranslated is None and len(self.real) == 2:
            a, b = self.real.values()
            self.untranslated = frechet.frechet_from_features(a, b)
        for output, _, real, ending in _sides(features):
            x, y = features[output], self.real[real]
            self.check(min(len(x), len(y)))
            fid = frechet.frechet_from_features(x, y)
            kid = frechet.kid(x, y, paired=real == "target")
            pl_module.log_dict({f"val/frechet{ending}": fid, f"val/kid{ending}": kid})
            count = f"{counted(len(x), 'output')}, {len(y)} real"
            if self.untranslated is not None:
                pl_module.log("val/frechet_untranslated", self.untranslated)
                count += f"; untranslated {self.untranslated:.2f}"
            line = f"{self.network.fid} {fid:.2f}, {self.network.kid} {1000 * kid:.2f} ({count})"
            tqdm.write(f"step {trainer.global_step}, {TITLES[output]}: {line}")
        self._begin()


def _sides(by_side: Mapping[str, Any]) -> tuple[tuple[str, str, str, str], ...]:
    return PAIRED if "output" in by_side else UNPAIRED


def _bytes(pictures: Tensor) -> Tensor:
    return to_uint8(over_white(pictures.detach().float()))
