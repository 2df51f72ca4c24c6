"""recipe=pix2pix and recipe=cyclegan: what is known of such a run, and what its commands do."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from distill.config.registry import Recipe, Side
from distill.config.settings.base import Direction
from distill_gan.settings import Adversarial, CycleGANTrain, Pix2PixTrain


class GanRecipe(Recipe):
    """Networks that train against each other, on pictures that need no teacher."""

    stem = "generator"

    def folder_parts(self, settings: Adversarial, swept: Mapping[str, str]) -> dict[str, str]:
        loss = swept.get("adversarial", settings.adversarial["kind"])  # two choices have a kind
        return {"recipe": self.name, "generator": settings.generator.name, "adversarial": loss}

    def pictures(self, subject: Any, side: Side) -> Any:
        from distill_gan.pictures import domain_pictures

        return domain_pictures(subject, side)

    def end_export(self, subject: Any, folder: Path, written: bool) -> None:
        from distill_gan.sizes import report_sizes

        report_sizes(subject, folder, written)

    def scores(
        self, network: Any, trained: Any, checkpoint: Path, settings: Any, features: Any
    ) -> Any:
        from distill.eval_fid.paired_scores import score_pairs
        from distill.models.checkpoint import load_network
        from distill_gan import held_out_pairs, unpaired_scores

        if isinstance(trained, CycleGANTrain):
            back, _ = load_network(checkpoint, unpaired_scores.OTHER[settings.direction])
            translated = unpaired_scores.held_out_domains(network, back, trained, settings)
            return translated, unpaired_scores.score_domains(translated, features, settings)
        pictures = held_out_pairs.held_out_pairs(network, trained, settings)
        return pictures, score_pairs(pictures, features, settings, {"generator": network})


class Pix2PixRecipe(GanRecipe):
    """A generator learns from pairs of pictures (Isola et al. 2017).

    One generator and one discriminator, which sees input and picture together.
    """

    name = "pix2pix"
    settings = Pix2PixTrain
    networks: ClassVar[Mapping[Direction, str]] = {"AtoB": "generator"}
    monitor = "val/l1"  # a target says more than a distance of a few pictures
    learns_from = "pairs"
    half_precision = True

    def train(self, settings: Pix2PixTrain, run: Any, first: bool) -> None:
        from distill_gan import gan_training, loaders
        from distill_gan.pix2pix import pix2pix_module

        gan_training.train(settings, run, loaders.paired, pix2pix_module)


class CycleGANRecipe(GanRecipe):
    """Two generators learn from two domains without pairs (Zhu et al. 2017).

    There is a discriminator for each direction.
    """

    name = "cyclegan"
    settings = CycleGANTrain
    networks: ClassVar[Mapping[Direction, str]] = {"AtoB": "a_to_b", "BtoA": "b_to_a"}
    monitor, objective = "val/frechet", "frechet"
    learns_from = "domains"
    published_macs = True

    def train(self, settings: CycleGANTrain, run: Any, first: bool) -> None:
        from distill_gan import gan_training, loaders
        from distill_gan.cyclegan import cyclegan_module

        gan_training.train(settings, run, loaders.unpaired, cyclegan_module)
