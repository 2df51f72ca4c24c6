"""recipe=pix2pix: a generator learns from pairs of pictures (Isola et al. 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from distill.config.registry import Direction
from distill.config.settings.commands import EvalFid
from distill.config.settings.training import Paired, Pix2PixTrain, Prepare
from distill.models.recipes.gan_recipe import GanRecipe


class Pix2PixRecipe(GanRecipe):
    """One generator and one discriminator, which sees input and picture together."""

    name = "pix2pix"
    settings = Pix2PixTrain
    data_settings = Paired
    networks: ClassVar[Mapping[Direction, str]] = {"AtoB": "generator"}
    monitor = "val/l1"

    def prepare(self, settings: Prepare) -> Path:
        from distill.core.next_step import next_step
        from distill.prepare.sketches import sketch_set

        sketch_set.prepare(settings)
        root = sketch_set.sketches_root(settings)
        print(next_step("train", recipe="pix2pix", **{"data.root": str(root)}))
        return root

    def data(self, settings: Pix2PixTrain) -> Any:
        from distill.data import loaders

        return loaders.paired(settings)

    def module(self, settings: Pix2PixTrain) -> Any:
        from distill.train import gan_training
        from distill.train.pix2pix import Pix2Pix

        # First: in the other order a seed would give the networks of earlier runs other weights.
        discriminator = gan_training.discriminator(settings, 3 + settings.channels)
        return Pix2Pix(
            gan_training.generator(settings),
            discriminator,
            l1=settings.l1,
            **gan_training.common(settings),
        )

    def evaluate(self, checkpoint: Path, settings: EvalFid, features: Any) -> tuple[Any, Any]:
        from distill.eval_fid import heldout, paired_scores
        from distill.models.checkpoint import load_network

        network, trained = load_network(checkpoint, settings.direction)
        pictures = heldout.held_out_pairs(network, trained, settings)
        drawn_by = {"generator": network}
        return pictures, paired_scores.score_pairs(pictures, features, settings, drawn_by)

    def half_precision(self, trained: dict[str, Any]) -> bool:
        return trained["generator"]["name"] != "student"  # a lens loads the half-precision U-Net
