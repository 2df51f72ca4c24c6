"""Recipes by the names that saved runs have for them."""

import pytest

from distill.config import registry
from distill.config.settings.training import Train
from distill.core.errors import DistillError


def test_a_checkpoint_of_an_unknown_recipe_is_refused():
    with pytest.raises(
        DistillError, match="recipe=other: unknown; there are distill, pix2pix, cyclegan"
    ):
        registry.settings_of({"recipe": "other"})


def test_runs_of_the_first_version_name_no_recipe():
    assert registry.schema_of({}) is Train
