"""The held-out pictures of a run with its network's output, and their scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distill.config.settings.commands import EvalFid
from distill.eval_fid import heldout, line_scores, paired_scores, unpaired_scores, whole_pictures
from distill.eval_fid.heldout import HeldOut
from distill.eval_fid.unpaired_scores import Translations
from distill.metrics.features import FeatureNetwork
from distill.models.checkpoint import load_network, recipe_in

# Pictures with `columns`, uint8 (n, 3, H, W), and `titles` of a contact sheet; their scores.
Scored = tuple[HeldOut | Translations, dict[str, Any]]


def score_run(checkpoint: Path, settings: EvalFid, features: FeatureNetwork | None) -> Scored:
    """Pictures that a run has not learnt from, and how good its network's output is there.

    Raises DistillError, as `load_network` does too.
    """
    kind = recipe_in(checkpoint).learns_from
    network, trained = load_network(checkpoint, settings.direction)
    if kind == "domains":
        back, _ = load_network(checkpoint, unpaired_scores.OTHER[settings.direction])
        translated = unpaired_scores.held_out_domains(network, back, trained, settings)
        return translated, unpaired_scores.score_domains(translated, features, settings)
    if kind == "pairs":
        pictures = heldout.held_out_pairs(network, trained, settings)
        networks = {"generator": network}
        return pictures, paired_scores.score_pairs(pictures, features, settings, networks)
    pictures, networks = heldout.held_out_photos(network, trained, settings), {}
    if settings.flicker:
        networks = line_scores.networks_of(network, trained, settings.photos)
    scores = paired_scores.score_pairs(pictures, features, settings, networks)
    if pictures.wholes:
        scores["sizes"] = whole_pictures.score_sizes(
            pictures.wholes, {"student": network}, features, heldout.group_of_pair,
            settings.bootstrap, settings.seed, settings.flicker,
        )  # fmt: skip
    return pictures, scores
