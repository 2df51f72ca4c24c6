"""python -m distill.train: trains a network from photos and a teacher, or from pictures.

Train a network of one of several recipes. Run it again to resume.

  python -m distill.train photos=DIR                     recipe=distill: your photos, a cartoon
  python -m distill.train style=paprika decoder=fastdepth
  python -m distill.train data=demo trainer=demo         nine photographs of scikit-image
  python -m distill.train style=ink 'estimate=[10000,1000000]'   time, disk and memory for so many
  python -m distill.train -m decoder=nnconv,fastdepth loss=l1,l1_sobel
  python -m distill.train style=custom teacher=checkpoint teacher.path=runs/NAME photos=DIR

distill: a small student learns the output of a heavy teacher. Photos are labelled once and
kept in data/pairs/; the run goes to runs/STYLE-DECODER/.
Then: python -m distill.export
With -m every combination of the values given is a run of its own, one after the other, in
runs/sweep-NAME/, with a summary of all at the end.

Everything, with its value: python -m distill.train --cfg job
"""

from collections.abc import Mapping, Sequence
from typing import Any

from distill.config.command import command
from distill.config.registry import schema_of
from distill.config.settings.training import Training
from distill.core.files import home_path
from distill.core.next_step import quoted


def implied(typed: Mapping[str, Any]) -> list[str]:
    """Words that follow from settings typed: of a folder of pairs, init=zoo:NAME and init=RUN."""
    words = list[str]()
    if typed.get("data.root"):
        from distill.data.kinds.registry import overrides_for_user_pairs

        words += overrides_for_user_pairs(typed)
    if init := typed.get("init"):
        from distill.models.zoo import overrides_for_init
        from distill.runs.run_folder import Run

        words += overrides_for_init(typed)
        if (folder := home_path(str(init))).is_dir():
            words.append(f"init={quoted(str(Run(folder).checkpoint('best')))}")
    return words


@command("train", schema_of, implied=implied)
def main(settings: Training, callbacks: Sequence[Any] = ()) -> None:
    from distill.train.recipes import train

    if getattr(settings, "estimate", None):
        from distill.train.estimate import estimate

        estimate(settings)  # type: ignore[arg-type]  # only recipe=distill has it
    else:
        train(settings, callbacks=callbacks)


if __name__ == "__main__":
    main()
