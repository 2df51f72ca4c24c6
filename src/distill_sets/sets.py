"""distill.prepare recipe=pix2pix and recipe=cyclegan."""

from typing import Any

from distill.config.extension import Extension
from distill.config.registry import recipe_named
from distill.core.next_step import next_step
from distill_sets.settings import SetSettings


class Sets(Extension):
    """Pairs of sketches and photos, or two domains, in place of a teacher's pairs."""

    settings = SetSettings

    def takes(self, settings: Any) -> bool:
        return recipe_named(settings.recipe.name).learns_from != "photos"

    def carry_out(self, settings: Any) -> None:
        from distill.data.cards import set_card
        from distill_sets import attributes, quickdraw
        from distill_sets.sketches import sketch_set

        if recipe_named(settings.recipe.name).learns_from == "pairs":
            root = sketch_set.carry_out(settings)
        else:
            root = (quickdraw if settings.quickdraw.files else attributes).carry_out(settings)
        print(next_step("train", recipe=settings.recipe.name, **{"data.root": str(root)}))
        if settings.card.name:
            set_card.write_card(settings, root)
