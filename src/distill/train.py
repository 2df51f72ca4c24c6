"""python -m distill.train: photos and a teacher to a trained student."""

from __future__ import annotations

import sys

from distill.config import INTERRUPTED, entry
from distill.settings import Train


@entry("train", Train)
def main(settings: Train) -> None:
    from dataclasses import asdict
    from pathlib import Path

    import pytorch_lightning as pl

    from distill import build, fitting, sources
    from distill.callbacks.interrupt import Interrupt
    from distill.runs import Run, step_of

    # All that can be wrong is found out before the teacher labels, which may take hours.
    run, plain = Run(Path(settings.runs) / settings.run), asdict(settings)
    checkpoint = run.resumable(plain, settings.resume)
    if checkpoint and step_of(checkpoint) >= settings.trainer.max_steps:
        print(
            f"{run.folder}: finished at step {step_of(checkpoint)}; for more: trainer.max_steps=N"
        )
        return
    sources.check(settings)
    teacher = build.teacher(settings)
    pl.seed_everything(settings.seed, verbose=False)
    module = build.module(settings, teacher)
    interrupt = Interrupt()
    trainer = fitting.trainer(settings, run, interrupt)

    data = build.data(settings, teacher)
    run.start(plain, settings.resume)
    if checkpoint:
        print(f"{run.folder}: resumes at step {step_of(checkpoint)} (resume=false starts anew)")
    else:
        print(f"{run.folder}: a new run of {settings.trainer.max_steps} steps")

    interrupt.listen()
    trainer.fit(module, data, ckpt_path=checkpoint, weights_only=True)
    trainer.save_checkpoint(run.last)
    if interrupt.asked:
        print(f"{run.folder}: stopped at step {trainer.global_step}; the same command goes on")
        sys.exit(INTERRUPTED)
    print(f"{run.folder}: trained; best checkpoint {run.checkpoint('best')}")


if __name__ == "__main__":
    main()
