"""recipe=cyclegan: two generators learn from two domains without pairs (Zhu et al. 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from distill.config.registry import Direction
from distill.config.settings.training import CycleGANTrain, UnpairedDataConfig
from distill.models.recipes.gan_recipe import GanRecipe


class CycleGANRecipe(GanRecipe):
    """A generator and a discriminator for each direction."""

    name = "cyclegan"
    settings = CycleGANTrain
    data_settings = UnpairedDataConfig
    networks: ClassVar[Mapping[Direction, str]] = {"AtoB": "a_to_b", "BtoA": "b_to_a"}
    monitor = "val/frechet"
    learns_from = "domains"
    published_macs = True
