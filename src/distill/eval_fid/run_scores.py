"""The held-out pictures of a run with its network's output, and their scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distill.config.settings.commands import EvalFid
from distill.config.settings.training import CycleGANTrain, Pix2PixTrain, Train
from distill.core.errors import DistillError
from distill.data import sources
from distill.data.photos import check_local
from distill.eval_fid import (
    heldout,
    line_scores,
    paired_scores,
    results,
    unpaired_scores,
    whole_pictures,
)
from distill.eval_fid.heldout import HeldOut
from distill.eval_fid.unpaired_scores import Translations
from distill.metrics.features import FeatureNetwork
from distill.metrics.metric import own_metrics
from distill.models.checkpoint import load_network
from distill.runs.run_folder import Run, find_run

# Pictures with `columns`, uint8 (n, 3, H, W), and `titles` of a contact sheet; their scores.
Scored = tuple[HeldOut | Translations, dict[str, Any]]


def carry_out(settings: EvalFid) -> tuple[Run | None, dict[str, Any]]:
    """distill.eval_fid: the run that was scored, None for two folders, and what results.json says.

    Its `fid_missing` is None, or says why there is no FID.
    """
    for key in ("photos", "a", "b"):
        check_local(getattr(settings, key), f"{key}=")
    run = None
    own_metrics(settings.metrics)  # what is wrong with them ends here
    features, missing = paired_scores.features_or_reason(settings.features)
    if settings.a or settings.b:
        if not (settings.a and settings.b):
            raise DistillError("two folders are compared: name both, a=DIR b=DIR")
        folder = Path(settings.output or "runs/eval")
        scores = paired_scores.score_folders(Path(settings.a), Path(settings.b), features, settings)
    else:
        run = find_run(settings)
        checkpoint = run.checkpoint(settings.checkpoint)
        pictures, scores = score_run(checkpoint, settings, features)
        own = Path("eval") if settings.direction == "AtoB" else Path("eval", settings.direction)
        folder = Path(settings.output) if settings.output else run.folder / own
        results.write_sheet(pictures.columns, pictures.titles, settings.sheet, folder)
    scores = scores | {"fid_missing": missing or None}
    results.write(scores, folder)
    return run, scores


def score_run(checkpoint: Path, settings: EvalFid, features: FeatureNetwork | None) -> Scored:
    """Pictures that a run has not learnt from, and how good its network's output is there.

    Raises DistillError, as `load_network` does too.
    """
    network, trained = load_network(checkpoint, settings.direction)
    trained = sources.seen_from_here(trained, checkpoint)
    if isinstance(trained, CycleGANTrain):
        back, _ = load_network(checkpoint, unpaired_scores.OTHER[settings.direction])
        translated = unpaired_scores.held_out_domains(network, back, trained, settings)
        return translated, unpaired_scores.score_domains(translated, features, settings)
    if isinstance(trained, Pix2PixTrain):
        pictures = heldout.held_out_pairs(network, trained, settings)
        networks = {"generator": network}
        return pictures, paired_scores.score_pairs(pictures, features, settings, networks)
    assert isinstance(trained, Train)
    pictures, networks = heldout.held_out_photos(network, trained, settings), {}
    if settings.flicker:
        networks = line_scores.networks_of(network, trained, settings.photos)
    scores = paired_scores.score_pairs(pictures, features, settings, networks)
    if pictures.wholes:
        scores["sizes"] = whole_pictures.score_sizes(
            pictures.wholes, {"student": network}, features, heldout.group_of_pair,
            settings.bootstrap, settings.seed, settings.flicker, own_metrics(settings.metrics),
        )  # fmt: skip
    return pictures, scores
