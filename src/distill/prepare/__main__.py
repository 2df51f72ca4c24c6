"""python -m distill.prepare: photos to pairs on disk, once: by a teacher, or sketches."""

from __future__ import annotations

from distill.config.compose import entry
from distill.config.registry import recipe_named
from distill.config.settings.training import Prepare
from distill.models.recipes import RECIPES


@entry("prepare", Prepare, recipes=RECIPES)
def main(settings: Prepare) -> None:
    from distill.core.errors import DistillError
    from distill.prepare import labelling_job
    from distill.prepare.sketches import sketch_set

    recipe = recipe_named(settings.recipe.name)
    if recipe.learns_from == "photos":
        root = labelling_job.carry_out(settings)
    elif recipe.learns_from == "pairs":
        root = sketch_set.carry_out(settings)
    else:
        raise DistillError(f"recipe={recipe.name}: takes pictures as they are, nothing to prepare")
    if settings.card.name:
        from distill.data.cards import set_card

        set_card.write_card(settings, root)


if __name__ == "__main__":
    main()
