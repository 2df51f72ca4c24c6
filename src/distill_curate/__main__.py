"""python -m distill.curate: finds pairs that do not fit, on a page to look through.

Look through a set of pairs before training on it: targets that lie off their photos, belong
to another photo, are in another style, are missing or repeat each other.

  python -m distill.curate data.root=DIR
  python -m distill.curate data.root=DIR apply=true
  python -m distill.train data.root=DIR data.align=true

Writes OUTPUT/index.html, a page of pictures sorted by each score, OUTPUT/scores.csv and
OUTPUT/drop.txt. Nothing in the set is changed; with apply=true the list is added to
its dropped.txt: training and evaluation leave out the photos that it names. drop=FILE
adds pairs of your own choice and keeps copies of them out, restore=FILE lets pairs in again.
Kill it any time: run it again to resume.

Everything, with its value: python -m distill.curate --cfg job
"""

from distill.config.command import command
from distill_curate.settings import Curate


@command("curate", Curate)
def main(settings: Curate) -> None:
    from distill_curate import curating

    curating.curate(settings)


if __name__ == "__main__":
    main()
