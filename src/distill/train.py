"""python -m distill.train: photos and a teacher to a trained student."""

from __future__ import annotations

from distill.config import entry
from distill.settings import Train


@entry("train", Train)
def main(settings: Train) -> None:
    from dataclasses import asdict
    from pathlib import Path

    import pytorch_lightning as pl

    from distill import build, sources
    from distill.runs import Run, step_of

    if settings.data.root is None:
        sources.photos(settings)  # a missing folder is said before weights are fetched
    run = Run(Path(settings.runs) / settings.run)
    teacher = (
        sources.teacher(settings.style, settings.teacher) if build.needs_teacher(settings) else None
    )
    data = build.data(settings, teacher)
    pl.seed_everything(settings.seed, verbose=False)  # labelling has used up random numbers
    module = build.module(settings, teacher)
    trainer = build.trainer(settings, run)

    checkpoint = run.start(asdict(settings), settings.resume)
    if checkpoint is None:
        print(f"{run.folder}: a new run of {settings.trainer.max_steps} steps")
    elif step_of(checkpoint) >= settings.trainer.max_steps:
        print(
            f"{run.folder}: finished at step {step_of(checkpoint)}; for more: trainer.max_steps=N"
        )
        return
    else:
        print(f"{run.folder}: resumes at step {step_of(checkpoint)} (resume=false starts anew)")

    trainer.fit(module, data, ckpt_path=checkpoint, weights_only=True)
    trainer.save_checkpoint(run.last)
    print(f"{run.folder}: trained; best checkpoint {run.checkpoint('best')}")


if __name__ == "__main__":
    main()
