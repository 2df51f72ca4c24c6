"""What a student was trained on, against what it is scored on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from distill.config.trained import source_of
from distill.core.errors import DistillError
from distill.data import sources
from distill.data.labelled.duplicates import similar_pairs, thumbnails
from distill.data.labelled.register import png_names
from distill.data.photos import Photo
from distill.evaluation.fidelity.heldout_set import FidelitySet, persons
from distill.models import checkpoint

UNKNOWN = "training photos not known"
# Share of held-out photos that may look like one of another set's. Of 10.6 million pairs of
# portraits of different persons three do, so a few are chance; more are copies.
CHANCE = 0.01


def check(name: str, trained: dict[str, Any], held: FidelitySet) -> str:
    """What is known of the training photos of a checkpoint and of those it started from.

    Raises DistillError as `_check` does.
    """
    own = _check(name, trained, held)  # whatever became of those it started from
    try:
        before = checkpoint.lineage(trained)[1:]
    except DistillError as error:
        return f"{own}; of its start {UNKNOWN}: {error}"
    return "; ".join(dict.fromkeys([own, *(_check(name, run, held) for run in before)]))


def _check(name: str, trained: dict[str, Any], held: FidelitySet) -> str:
    """What is known of a run's training photos, in a few words, from its settings.

    Raises DistillError where a held-out photo, or a picture of the same person, was trained on:
    by the names of folder and file, and by what the pictures look like.
    """
    root = sources.pairs_root(source_of(trained))
    seen = set(persons(root, "train").values())
    if not seen:
        return UNKNOWN
    shared = [file for file, who in zip(held.files, held.who, strict=True) if who in seen]
    if shared:
        raise _refusal(name, root, shared, len(held.files), "themselves or by the same person")
    if root.resolve() == held.root.resolve():
        return "the other side of this set"
    alike = _near_duplicates(root, held)
    if len(alike) > CHANCE * len(held.files):
        raise _refusal(name, root, alike, len(held.files), "as they are or as near-duplicates")
    return f"set {root.name}: no photo or person shared, {len(alike)} look alike"


def _refusal(name: str, root: Path, shared: Sequence[str], of: int, how: str) -> DistillError:
    return DistillError(
        f"{name}: {len(shared)} of {of} held-out photos are in its training set {root} {how} "
        f"(first: {shared[0]}); score it on another set"
    )


def _near_duplicates(root: Path, held: FidelitySet) -> list[str]:
    """The held-out photos that look like one the other set trains on; both cut their squares."""
    ours = [Photo(held.root / "val/photo" / file, file) for file in held.files]
    kept = sorted(png_names(root, "train", "photo"))
    theirs = [Photo(root / "train/photo" / file, file) for file in kept]
    small = [
        thumbnails(ours, f"{held.root.resolve()}/val"),
        thumbnails(theirs, f"{root.resolve()}"),
    ]
    edges = similar_pairs(np.concatenate(small))
    across = edges[(edges[:, 0] < len(ours)) & (edges[:, 1] >= len(ours)), 0]
    return [held.files[i] for i in np.unique(across)]
