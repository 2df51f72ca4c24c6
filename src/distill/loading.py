"""From checked settings to the pictures of a training: both datasets and their loaders."""

from __future__ import annotations

from typing import Any

from distill import sources
from distill.data.layouts import find_pairs
from distill.data.module import DistillData
from distill.data.recipe import recipe_at
from distill.data.register import folders_of
from distill.data.sets import PairSet, PhotoSet
from distill.data.shares import shares_of
from distill.errors import DistillError
from distill.settings import Train
from distill.teachers.base import Teacher


def data(settings: Train, of: Teacher | None) -> DistillData:
    """Training and validation pictures; labels what is missing on the way."""
    kind = settings.data.kind
    train, val = _photo_sets(settings, of) if kind == "photos" else _pair_sets(settings, of)
    d = settings.data
    return DistillData(train, val, d.batch_size, d.workers, d.val_limit)


def _photo_sets(settings: Train, of: Teacher | None) -> tuple[PhotoSet, PhotoSet]:
    assert of is not None
    d, size = settings.data, settings.style.resolution
    sides = sources.split_on_the_fly(settings, of)
    for side, photos in sides.items():
        if not photos:
            raise DistillError(f"no {side} photo is left; add photos, or change drop=FILE")
    folders = sources.training_folders(settings)
    shares = shares_of(d.weights, folders, [photo.folder for photo in sides["train"]])
    train = PhotoSet(
        sides["train"],
        d.crop_size or size,
        train=True,
        crop=settings.crop,
        colour=d.colour,
        seed=settings.seed,
        shares=shares,
    )
    return train, PhotoSet(sides["val"], size, False, settings.crop)


def _pair_sets(settings: Train, of: Teacher | None) -> tuple[PairSet, PairSet]:
    if sources.needs_labels(settings):
        assert of is not None
        sources.prepare(settings, of)
    root = sources.pairs_root(settings)
    d = settings.data
    sides = find_pairs(root, settings.style.name, d.val_fraction, d.split_seed)
    if not sides["train"]:
        raise DistillError(f"{root}: has val/ but no train/, nothing to learn from")
    common: dict[str, Any] = {"size": settings.style.resolution, "alpha": settings.channels == 4}
    names = (recipe_at(root) or {}).get("folders", [])
    folders = folders_of(root, [pair.name for pair in sides["train"]]) if d.weights else []
    shares = shares_of(d.weights, names, folders)
    train = PairSet(
        sides["train"],
        train=True,
        crop_size=d.crop_size,
        flip=d.flip,
        seed=settings.seed,
        shares=shares,
        **common,
    )
    return train, PairSet(sides["val"], train=False, **common)
