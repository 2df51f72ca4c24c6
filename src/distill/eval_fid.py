"""python -m distill.eval_fid: how close what is drawn is to what was wanted, on held-out photos."""

from __future__ import annotations

import sys

from distill.config import entry
from distill.settings import EvalFid


@entry("eval_fid", EvalFid)
def main(settings: EvalFid) -> None:
    from pathlib import Path

    from distill import build, evaluation, heldout, results, unpaired
    from distill.errors import DistillError
    from distill.runs import find_run
    from distill.teachers.checkpoint import recipe_of

    features, missing = evaluation.features_or_reason(settings.features)
    if settings.a or settings.b:
        if not (settings.a and settings.b):
            raise DistillError("two folders are compared: name both, a=DIR b=DIR")
        folder = Path(settings.output or "runs/eval")
        scores = evaluation.two_folders(Path(settings.a), Path(settings.b), features, settings)
    else:
        run = find_run(settings)
        folder = Path(settings.output) if settings.output else run.folder / "eval"
        checkpoint = run.checkpoint(settings.checkpoint)
        network, trained = build.load_network(checkpoint, settings.direction)
        pictures: heldout.HeldOut | unpaired.Looks
        if recipe_of(trained) == "cyclegan":
            if settings.output is None and settings.direction != "AtoB":
                folder /= settings.direction
            back, _ = build.load_network(checkpoint, unpaired.OTHER[settings.direction])
            pictures = unpaired.held_out(network, back, trained, settings)
            scores = unpaired.scores(pictures, features, settings)
        else:
            of_pairs = recipe_of(trained) == "pix2pix"
            read = heldout.held_out_pairs if of_pairs else heldout.held_out
            pictures = read(network, trained, settings)
            scores = evaluation.against_teacher(pictures, features, settings)
        results.write_sheet(pictures.rows(settings.sheet), pictures.titles, folder)

    results.write(scores, folder, missing)
    if missing:
        print(f"error: FID is missing: {missing}", file=sys.stderr)
        sys.exit(evaluation.FID_MISSING)


if __name__ == "__main__":
    main()
