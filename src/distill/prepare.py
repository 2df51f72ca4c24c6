"""python -m distill.prepare: photos to pairs on disk, once: drawn by a teacher, or as sketches."""

from __future__ import annotations

from distill.arguments import split_recipe
from distill.config import entry
from distill.settings import Prepare


@entry("prepare", Prepare, words=split_recipe)
def main(settings: Prepare) -> None:
    from distill import sketching, sources

    if settings.recipe.name == "pix2pix":
        sketching.prepare(settings)
        return
    sources.check_labelling(settings)  # what is wrong is said before weights are fetched
    sources.prepare(settings, sources.teacher(settings.style, settings.teacher))


if __name__ == "__main__":
    main()
