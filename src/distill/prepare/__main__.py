"""python -m distill.prepare: turns photos into training pairs, by a teacher.

Label photos with a teacher, once: pairs of photo and stylized photo on disk.

  python -m distill.prepare style=hayao photos=DIR
  python -m distill.prepare -m style=toon,hayao photos=DIR     one after the other
  python -m distill.prepare style=custom style.name=NAME photos=DIR teacher=python \\
      teacher.call=MODULE:NAME     a callable, (N, 3, H, W) float32 RGB in [0, 1] to the same
  python -m distill.prepare style=custom style.name=NAME photos=DIR teacher=folder \\
      teacher.folder=DIR           drawings with their photos' names

Writes data/pairs/STYLE-PHOTOS-SIZE/ with photo/ and stylized/ under train/, val/ and test/, a
dataset.json and a list of what was skipped and why. Prints how far the teacher's output is
displaced from the photos.
Kill it any time: run it again to resume.

Everything, with its value: python -m distill.prepare --cfg job
"""

from distill.config.command import command
from distill.config.extension import added_settings
from distill.config.settings.training import Prepare


@command("prepare", Prepare)
def main(settings: Prepare) -> None:
    from distill.core.next_step import same_settings
    from distill.data.licence_terms import check_stated
    from distill.prepare import labelling

    check_stated(settings.card, settings)
    root = labelling.carry_out(settings)
    print(same_settings("train", without=("engine", "card", *added_settings("prepare"))))
    if settings.card.name:
        from distill.data.cards import set_card

        set_card.write_card(settings, root)


if __name__ == "__main__":
    main()
