"""python -m distill.train: photos and a teacher to a trained student."""

from __future__ import annotations

from contextlib import nullcontext

from distill.config.compose import entry
from distill.config.settings import Adversarial, CycleGANTrain, Pix2PixTrain, Train
from distill.runs.sweep import Folders

RECIPES = {"distill": Train, "pix2pix": Pix2PixTrain, "cyclegan": CycleGANTrain}


@entry("train", RECIPES, sweep=Folders())
def main(settings: Train | Adversarial) -> None:
    from pathlib import Path

    from distill.runs.run_folder import Run
    from distill.training import gan_training, student_training
    from distill.training.trainer import is_first_process

    run, first = Run(Path(settings.runs) / settings.run), is_first_process()
    with run.alone() if first else nullcontext():
        if isinstance(settings, Adversarial):
            gan_training.train(settings, run)
        else:
            student_training.distil(settings, run, first)


if __name__ == "__main__":
    main()
