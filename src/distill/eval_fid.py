"""python -m distill.eval_fid: how close what is drawn is to what was wanted, on held-out photos."""

from __future__ import annotations

import sys

from distill.config.compose import entry
from distill.config.settings import EvalFid


@entry("eval_fid", EvalFid)
def main(settings: EvalFid) -> None:
    from pathlib import Path

    from distill.core.errors import DistillError
    from distill.evaluation import heldout, paired_scores, results, unpaired_scores
    from distill.models.checkpoint import load_network, recipe_of
    from distill.runs.run_folder import find_run

    features, missing = paired_scores.features_or_reason(settings.features)
    if settings.a or settings.b:
        if not (settings.a and settings.b):
            raise DistillError("two folders are compared: name both, a=DIR b=DIR")
        folder = Path(settings.output or "runs/eval")
        scores = paired_scores.two_folders(Path(settings.a), Path(settings.b), features, settings)
    else:
        run = find_run(settings)
        folder = Path(settings.output) if settings.output else run.folder / "eval"
        checkpoint = run.checkpoint(settings.checkpoint)
        network, trained = load_network(checkpoint, settings.direction)
        pictures: heldout.HeldOut | unpaired_scores.Looks
        if recipe_of(trained) == "cyclegan":
            if settings.output is None and settings.direction != "AtoB":
                folder /= settings.direction
            back, _ = load_network(checkpoint, unpaired_scores.OTHER[settings.direction])
            pictures = unpaired_scores.held_out(network, back, trained, settings)
            scores = unpaired_scores.scores(pictures, features, settings)
        else:
            of_pairs = recipe_of(trained) == "pix2pix"
            read = heldout.held_out_pairs if of_pairs else heldout.held_out
            pictures = read(network, trained, settings)
            scores = paired_scores.against_teacher(pictures, features, settings)
        results.write_sheet(pictures.rows(settings.sheet), pictures.titles, folder)

    results.write(scores, folder, missing)
    if missing:
        print(f"error: FID is missing: {missing}", file=sys.stderr)
        sys.exit(paired_scores.FID_MISSING)


if __name__ == "__main__":
    main()
