"""python -m distill.eval_fid: how close the student is to its teacher, on held-out photos."""

from __future__ import annotations

import sys

from distill.config import entry
from distill.settings import EvalFid


@entry("eval_fid", EvalFid)
def main(settings: EvalFid) -> None:
    from pathlib import Path

    from distill import build, evaluation, results
    from distill.errors import DistillError
    from distill.heldout import held_out
    from distill.runs import find_run

    features, missing = evaluation.features_or_reason(settings.features)
    if settings.a or settings.b:
        if not (settings.a and settings.b):
            raise DistillError("two folders are compared: name both, a=DIR b=DIR")
        folder = Path(settings.output or "runs/eval")
        scores = evaluation.two_folders(Path(settings.a), Path(settings.b), features, settings)
    else:
        run = find_run(settings)
        folder = Path(settings.output) if settings.output else run.folder / "eval"
        student, trained = build.load_student(run.checkpoint(settings.checkpoint))
        pictures = held_out(student, trained, settings)
        scores = evaluation.against_teacher(pictures, features, settings)
        results.write_sheet(pictures.rows(settings.sheet), folder)

    results.write(scores, folder, missing)
    if missing:
        print(f"error: FID is missing: {missing}", file=sys.stderr)
        sys.exit(evaluation.FID_MISSING)


if __name__ == "__main__":
    main()
