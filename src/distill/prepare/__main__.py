"""python -m distill.prepare: turns photos into training pairs, by a teacher or as sketches.

Label photos with a teacher, once: pairs of photo and stylized photo on disk. Or make sketches
of them, to train a network that turns a sketch into a photo.

  python -m distill.prepare style=hayao photos=DIR
  python -m distill.prepare -m style=toon,hayao photos=DIR     one after the other
  python -m distill.prepare style=hayao photos=DIR data=shards engine=ray
  python -m distill.prepare recipe=pix2pix photos=DIR sketch.points=faces
  python -m distill.prepare style=custom style.name=NAME photos=DIR teacher=python \\
      teacher.call=MODULE:NAME     a callable, (N, 3, H, W) float32 RGB in [0, 1] to the same
  python -m distill.prepare style=custom style.name=NAME photos=DIR teacher=folder \\
      teacher.folder=DIR           drawings with their photos' names
  python -m distill.prepare recipe=cyclegan photos=DIR attributes=list_attr_celeba.txt split=Male \\
      identities=identity_CelebA.txt   two domains, by an attribute
  python -m distill.prepare recipe=cyclegan quickdraw.files=cat.ndjson photos=DIR

Writes data/pairs/STYLE-PHOTOS-SIZE/ with photo/ and stylized/ under train/, val/ and test/, a
dataset.json and a list of what was skipped and why. Prints how far the teacher's output is
displaced from the photos.
Kill it any time: run it again to resume.
With data=shards it writes data/shards/STYLE-PHOTOS-SIZE/ instead, or data.root=ADDRESS: the same
set as shards, as distill.shards packs them. Photos added later go into further shards.
recipe=pix2pix writes data/sketches/PHOTOS-SIZE/ with A/ (outlines) and B/ (photos) instead, and
preview.png, which shows every step of eight photos.

Everything, with its value: python -m distill.prepare --cfg job
"""

from __future__ import annotations

from distill.config.command import command
from distill.config.registry import recipe_named
from distill.config.settings.training import Prepare


@command("prepare", Prepare)
def main(settings: Prepare) -> None:
    from distill.core.next_step import same_settings
    from distill.prepare import attributes, labelling, quickdraw
    from distill.prepare.sketches import sketch_set

    recipe = recipe_named(settings.recipe.name)
    if recipe.learns_from == "photos":
        root = labelling.carry_out(settings)
        print(same_settings("train", without=("engine", "shard", "card")))
    elif recipe.learns_from == "pairs":
        root = sketch_set.carry_out(settings)
    else:
        root = (quickdraw if settings.quickdraw.files else attributes).carry_out(settings)
    if settings.card.name:
        from distill.data.cards import set_card

        set_card.write_card(settings, root)


if __name__ == "__main__":
    main()
