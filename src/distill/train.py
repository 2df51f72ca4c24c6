"""python -m distill.train: photos and a teacher to a trained student."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING

from distill.config import entry
from distill.errors import INTERRUPTED
from distill.folders import Folders
from distill.settings import Train

if TYPE_CHECKING:
    from distill.runs import Run


@entry("train", Train, sweep=Folders())
def main(settings: Train) -> None:
    from pathlib import Path

    from distill import fitting
    from distill.runs import Run

    run, first = Run(Path(settings.runs) / settings.run), fitting.is_first_process()
    with run.alone() if first else nullcontext():
        train(settings, run, first)


def train(settings: Train, run: Run, first: bool) -> None:
    """Train, or go on; `first` of several processes speaks and writes."""
    from dataclasses import asdict

    import pytorch_lightning as pl

    from distill import build, fitting, loading, sources, tuning
    from distill.callbacks.checkpoints import Checkpoints, Interrupted
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
    checkpoints = Checkpoints(run)
    trainer = fitting.trainer(settings, run, checkpoints)
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

    try:
        with fitting.ctrl_c():
            trainer.fit(module, data, ckpt_path=checkpoint, weights_only=True)
    except Interrupted:
        print(f"{run.folder}: stopped at step {trainer.global_step}; the same command goes on")
        sys.exit(INTERRUPTED)
    checkpoints.save(trainer)
    if trainer.global_step < settings.trainer.max_steps:
        print(f"{run.folder}: {over(run.last, settings.trainer.max_steps)}")
    print(f"{run.folder}: trained; best checkpoint {run.checkpoint('best')}")


if __name__ == "__main__":
    main()
