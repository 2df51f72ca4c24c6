"""What a student was trained on, against what it is scored on."""

from __future__ import annotations

from collections.abc import Sequence, Set
from pathlib import Path

from against_teacher.heldout_set import FidelitySet, persons
from distill.config.settings.training import Train, source_of
from distill.core.errors import DistillError
from distill.core.files import real_path
from distill.data.kinds import registry
from distill.data.photo_table import png_names, read_rows
from distill.data.photos import Photo, Side
from distill.eval_fid.training_pictures import near_duplicates, runs_behind, seen_sides

UNKNOWN = "training photos not known"
# Share of held-out photos that may look like one of another set's. Of 10.6 million pairs of
# portraits of different persons three do, so a few are chance; more are copies.
CHANCE = 0.01


def check(name: str, trained: Train, held: FidelitySet) -> str:
    """What is known of the training photos of a checkpoint and of those it started from.

    Raises DistillError as `_check` does.
    """
    runs, unknown = runs_behind(trained)
    said = "; ".join(dict.fromkeys(_check(name, run, held) for run in runs))
    return f"{said}; of its start {UNKNOWN}: {unknown}" if unknown else said


def _check(name: str, trained: Train, held: FidelitySet) -> str:
    """What is known of a run's training photos, in a few words, from its settings.

    Raises DistillError where a held-out photo, or a picture of the same person, was trained on or
    chose the checkpoint: by the names of folder and file, and by what the pictures look like.
    """
    source = source_of(trained)
    root = registry.data_source(source).folder
    sides = _seen(root, held)
    seen = {who for side in sides for who in persons(root, side).values()}
    if not seen:
        return UNKNOWN
    shared = [file for file, who in zip(held.files, held.who, strict=True) if who in seen]
    if shared:
        raise _refusal(name, root, shared, len(held.files), "themselves or by the same person")
    if source.data.kind == "shards":  # of which no training picture is at hand
        return f"shards {source.data.root}: no photo or person shared by name, looks not compared"
    if real_path(root) == real_path(held.root):
        return "the other side of this set"
    alike = _near_duplicates(root, sides, held)
    if len(alike) > CHANCE * len(held.files):
        raise _refusal(name, root, alike, len(held.files), "as they are or as near-duplicates")
    return f"set {root.name}: no photo or person shared, {len(alike)} look alike"


def _seen(root: Path, held: FidelitySet) -> Set[Side]:
    """The sides of a run's set that may not be scored; what is scored to choose has one less."""
    there = {row.side for row in read_rows(root).values() if row.side}
    return seen_sides(there) if held.side == "test" else {"train"}


def _refusal(name: str, root: Path, shared: Sequence[str], of: int, how: str) -> DistillError:
    return DistillError(
        f"{name}: {len(shared)} of {of} held-out photos are in its training set {root} {how} "
        f"(first: {shared[0]}); score it on another set"
    )


def _near_duplicates(root: Path, sides: Set[Side], held: FidelitySet) -> list[str]:
    """The held-out photos that look like one the other set has seen; both cut their squares."""
    ours = [Photo(held.root / held.side / "photo" / file, file) for file in held.files]
    theirs = [
        Photo(root / side / "photo" / file, f"{side}/{file}")
        for side in sorted(sides)
        for file in sorted(png_names(root, side, "photo"))
    ]
    caches = (f"{real_path(held.root)}/{held.side}", f"{real_path(root)}")
    return [held.files[i] for i in near_duplicates(ours, theirs, caches)]
