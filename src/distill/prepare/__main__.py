"""python -m distill.prepare: photos to pairs on disk, once: by a teacher, or sketches."""

from __future__ import annotations

from distill.config.compose import entry
from distill.config.registry import recipe_named
from distill.config.settings.training import Prepare
from distill.models.recipes import RECIPES


@entry("prepare", Prepare, recipes=RECIPES)
def main(settings: Prepare) -> None:
    root = recipe_named(settings.recipe.name).prepare(settings)
    if settings.card.name:
        from distill.data.cards import set_card

        set_card.write_card(settings, root)


if __name__ == "__main__":
    main()
