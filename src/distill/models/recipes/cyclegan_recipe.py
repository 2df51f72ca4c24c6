"""recipe=cyclegan: two generators learn from two domains without pairs (Zhu et al. 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from distill.config.registry import Direction
from distill.config.settings.commands import EvalFid
from distill.config.settings.training import CycleGANTrain, Unpaired
from distill.models.recipes.gan_recipe import GanRecipe


class CycleGANRecipe(GanRecipe):
    """A generator and a discriminator for each direction."""

    name = "cyclegan"
    settings = CycleGANTrain
    data_settings = Unpaired
    networks: ClassVar[Mapping[Direction, str]] = {"AtoB": "a_to_b", "BtoA": "b_to_a"}
    monitor = "val/frechet"
    published_macs = True

    def data(self, settings: CycleGANTrain) -> Any:
        from distill.data import loaders

        return loaders.unpaired(settings)

    def module(self, settings: CycleGANTrain) -> Any:
        from distill.train import gan_training
        from distill.train.cyclegan import CycleGAN

        return CycleGAN(
            gan_training.generator(settings),
            gan_training.generator(settings),
            gan_training.discriminator(settings, 3),
            gan_training.discriminator(settings, 3),
            cycle=settings.cycle,
            identity=settings.identity,
            pool=settings.pool,
            **gan_training.common(settings),
        )

    def evaluate(self, checkpoint: Path, settings: EvalFid, features: Any) -> tuple[Any, Any]:
        from distill.eval_fid import unpaired_scores
        from distill.models.checkpoint import load_network

        network, trained = load_network(checkpoint, settings.direction)
        back, _ = load_network(checkpoint, unpaired_scores.OTHER[settings.direction])
        pictures = unpaired_scores.held_out_domains(network, back, trained, settings)
        return pictures, unpaired_scores.score_domains(pictures, features, settings)
