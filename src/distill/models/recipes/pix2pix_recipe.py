"""recipe=pix2pix: a generator learns from pairs of pictures (Isola et al. 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from distill.config.registry import Direction
from distill.config.settings.training import PairedDataConfig, Pix2PixTrain
from distill.models.recipes.gan_recipe import GanRecipe


class Pix2PixRecipe(GanRecipe):
    """One generator and one discriminator, which sees input and picture together."""

    name = "pix2pix"
    settings = Pix2PixTrain
    data_settings = PairedDataConfig
    networks: ClassVar[Mapping[Direction, str]] = {"AtoB": "generator"}
    monitor = "val/l1"
    learns_from = "pairs"

    def half_precision(self, trained: dict[str, Any]) -> bool:
        return trained["generator"]["name"] != "student"  # a lens loads the half-precision U-Net
