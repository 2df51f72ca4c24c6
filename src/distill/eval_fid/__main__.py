"""python -m distill.eval_fid: how close a network's output is to its target, on held-out photos."""

from __future__ import annotations

import sys

from distill.config.compose import entry
from distill.config.settings.commands import EvalFid
from distill.models.recipes import RECIPES


@entry("eval_fid", EvalFid, recipes=RECIPES)
def main(settings: EvalFid) -> None:
    from pathlib import Path

    from distill.core.errors import DistillError
    from distill.core.next_step import next_step
    from distill.data.photos import check_local
    from distill.eval_fid import paired_scores, results, run_scores
    from distill.runs.run_folder import find_run

    for key in ("photos", "a", "b"):
        check_local(getattr(settings, key), f"{key}=")
    run = None
    features, missing = paired_scores.features_or_reason(settings.features)
    if settings.a or settings.b:
        if not (settings.a and settings.b):
            raise DistillError("two folders are compared: name both, a=DIR b=DIR")
        folder = Path(settings.output or "runs/eval")
        scores = paired_scores.score_folders(Path(settings.a), Path(settings.b), features, settings)
    else:
        run = find_run(settings)
        checkpoint = run.checkpoint(settings.checkpoint)
        pictures, scores = run_scores.score_run(checkpoint, settings, features)
        own = Path("eval") if settings.direction == "AtoB" else Path("eval", settings.direction)
        folder = Path(settings.output) if settings.output else run.folder / own
        results.write_sheet(pictures.columns, pictures.titles, settings.sheet, folder)

    results.write(scores, folder, missing)
    if run and run.is_there:
        way = {} if settings.direction == "AtoB" else {"direction": settings.direction}
        print(next_step("stylize", "PHOTO.jpg", **run.words, **way))
    if missing:
        print(f"error: FID is missing: {missing}", file=sys.stderr)
        sys.exit(paired_scores.FID_MISSING)


if __name__ == "__main__":
    main()
