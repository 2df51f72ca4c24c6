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
    each = {"photos": _of_photos, "pairs": _of_pairs, "domains": _of_domains}
    return each[recipe_in(checkpoint).learns_from](checkpoint, settings, features)


def _of_photos(checkpoint: Path, settings: EvalFid, features: FeatureNetwork | None) -> Scored:
    network, trained = load_network(checkpoint, settings.direction)
    pictures = heldout.held_out_photos(network, trained, settings)
    of = (network, trained, settings.photos)
    networks = line_scores.networks_of(*of) if settings.flicker else {}
    scores = paired_scores.score_pairs(pictures, features, settings, networks)
    if pictures.wholes:
        scores["sizes"] = whole_pictures.score_sizes(
            pictures.wholes, {"student": network}, features, heldout.group_of_pair,
            settings.bootstrap, settings.seed, settings.flicker,
        )  # fmt: skip
    return pictures, scores


def _of_pairs(checkpoint: Path, settings: EvalFid, features: FeatureNetwork | None) -> Scored:
    network, trained = load_network(checkpoint, settings.direction)
    pictures = heldout.held_out_pairs(network, trained, settings)
    networks = {"generator": network}
    return pictures, paired_scores.score_pairs(pictures, features, settings, networks)


def _of_domains(checkpoint: Path, settings: EvalFid, features: FeatureNetwork | None) -> Scored:
    network, trained = load_network(checkpoint, settings.direction)
    back, _ = load_network(checkpoint, unpaired_scores.OTHER[settings.direction])
    pictures = unpaired_scores.held_out_domains(network, back, trained, settings)
    return pictures, unpaired_scores.score_domains(pictures, features, settings)
