"""recipe=pix2pix and recipe=cyclegan: networks that train against each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from distill.config.registry import Direction, Recipe
from distill.config.settings.training import (
    Adversarial,
    Budget,
    CycleGANTrain,
    Generator,
    PairedDataConfig,
    Pix2PixTrain,
    UnpairedDataConfig,
)
from distill.config.validate import fit


class GanRecipe(Recipe):
    """Networks that train against each other, on pictures that need no teacher."""

    data_settings: ClassVar[type]  # schema of its `data`

    def folder_parts(self, settings: Adversarial, swept: Mapping[str, str]) -> dict[str, str]:
        loss = swept.get("adversarial", settings.adversarial["kind"])  # two choices have a kind
        return {"recipe": self.name, "generator": settings.generator.name, "adversarial": loss}

    def check(self, trained: dict[str, Any]) -> None:
        trained["run"]  # raises, like `fit`, for what a file from elsewhere lacks
        fit(trained["data"], self.data_settings)
        fit(trained["generator"], Generator)
        fit(trained["budget"], Budget)

    def network(self, trained: dict[str, Any]) -> Any:
        from distill.models.checkpoint import untrained_generator

        return untrained_generator(trained)

    def description(self, trained: dict[str, Any]) -> dict[str, Any]:
        return {
            "run": trained["run"],
            "generator": trained["generator"],
            "channels": trained["channels"],
            "data": {"crop_size": trained["data"]["crop_size"]},
        }

    def side(self, trained: dict[str, Any]) -> int:
        return trained["data"]["crop_size"]

    def profile(self, trained: dict[str, Any]) -> Any:
        return trained["generator"]["profile"]

    def facts(self, trained: dict[str, Any], direction: Direction) -> dict[str, Any]:
        of = {"recipe": self.name, "run": trained["run"], "direction": direction}
        return of | {"network": trained["generator"]}


class Pix2PixRecipe(GanRecipe):
    """A generator learns from pairs of pictures (Isola et al. 2017).

    One generator and one discriminator, which sees input and picture together.
    """

    name = "pix2pix"
    settings = Pix2PixTrain
    data_settings = PairedDataConfig
    networks: ClassVar[Mapping[Direction, str]] = {"AtoB": "generator"}
    monitor = "val/l1"
    learns_from = "pairs"

    def half_precision(self, trained: dict[str, Any]) -> bool:
        return trained["generator"]["name"] != "student"  # a lens loads the half-precision U-Net


class CycleGANRecipe(GanRecipe):
    """Two generators learn from two domains without pairs (Zhu et al. 2017).

    There is a discriminator for each direction.
    """

    name = "cyclegan"
    settings = CycleGANTrain
    data_settings = UnpairedDataConfig
    networks: ClassVar[Mapping[Direction, str]] = {"AtoB": "a_to_b", "BtoA": "b_to_a"}
    monitor = "val/frechet"
    learns_from = "domains"
    published_macs = True
