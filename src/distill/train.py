"""python -m distill.train: photos and a teacher to a trained student."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from distill.config import entry
from distill.folders import Folders
from distill.settings import Adversarial, CycleGANTrain, Pix2PixTrain, Train

if TYPE_CHECKING:
    from distill.runs import Run

RECIPES = {"distill": Train, "pix2pix": Pix2PixTrain, "cyclegan": CycleGANTrain}


@entry("train", RECIPES, sweep=Folders())
def main(settings: Train | Adversarial) -> None:
    from pathlib import Path

    from distill import fitting, translating
    from distill.runs import Run

    run, first = Run(Path(settings.runs) / settings.run), fitting.is_first_process()
    with run.alone() if first else nullcontext():
        if isinstance(settings, Adversarial):
            translating.train(settings, run)
        else:
            distil(settings, run, first)


def distil(settings: Train, run: Run, first: bool) -> None:
    """Train a student, or go on; `first` of several processes speaks and writes."""
    from dataclasses import asdict

    import pytorch_lightning as pl

    from distill import build, fitting, loading, sources, tuning
    from distill.saved import over, step_of

    # All that can be wrong is found out before the teacher labels, which may take hours.
    plain = asdict(settings)
    checkpoint = run.resumable(plain, settings.resume)
    if checkpoint and (end := over(checkpoint, settings.trainer.max_steps)):
        print(f"{run.folder}: {end}")
        return
    sources.check(settings)
    teacher = build.teacher(settings)
    pl.seed_everything(settings.seed, verbose=False)
    module = build.module(settings, teacher)
    trainer = fitting.trainer(settings, run, build.watchers(settings))
    data = loading.data(settings, teacher)

    if not first:  # the first has done what follows
        tuning.take_over(module, run)
    else:
        run.start(plain, settings.resume)
        if checkpoint:
            print(f"{run.folder}: resumes at step {step_of(checkpoint)} (resume=false starts anew)")
        else:
            print(f"{run.folder}: a new run of {settings.trainer.max_steps} steps")
            tuning.measure(module, data, settings, run, trainer.strategy.root_device)

    fitting.fit(trainer, module, data, run, checkpoint)


if __name__ == "__main__":
    main()
