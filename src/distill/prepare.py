"""python -m distill.prepare: photos to pairs on disk, once: drawn by a teacher, or as sketches."""

from __future__ import annotations

from distill.config.arguments import split_recipe
from distill.config.compose import entry
from distill.config.settings import Prepare


@entry("prepare", Prepare, words=split_recipe)
def main(settings: Prepare) -> None:
    from distill.data import sources
    from distill.data.sketches import making
    from distill.models import build

    if settings.recipe.name == "pix2pix":
        making.prepare(settings)
        return
    sources.check_labelling(settings)  # what is wrong is said before weights are fetched
    sources.prepare(settings, build.load_teacher(settings.style, settings.teacher))


if __name__ == "__main__":
    main()
