"""From checked settings to the pictures of a training: both datasets and their loaders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from distill.config.settings import CycleGANTrain, Pictures, Pix2PixTrain, Train
from distill.core.errors import DistillError
from distill.data import sources
from distill.data.datamodule import DistillData
from distill.data.datasets import PairSet, PhotoSet, UnpairedSet
from distill.data.domains import find_unpaired
from distill.data.labelled.manifest import is_complete, read_manifest, recipe_at
from distill.data.labelled.register import folders_of
from distill.data.layouts import find_pairs
from distill.data.pairs import check_transparency
from distill.data.sampler import shares_of
from distill.models.teachers.teacher import Teacher


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
    _check_some(root, sides["train"])
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


def paired(settings: Pix2PixTrain) -> DistillData:
    """Training and validation pairs of recipe=pix2pix, the latter at the side of the crops."""
    d, alpha = settings.data, settings.channels == 4
    if d.root is None:
        raise DistillError(
            "data.root=null: recipe=pix2pix learns from pairs; give a folder with A/ + B/ or "
            "pictures side by side as data.root=DIR (distill.prepare recipe=pix2pix makes some)"
        )
    _check_sizes(d)
    root, swap = Path(d.root), d.direction == "BtoA"
    if read_manifest(root) is not None and not is_complete(root):
        raise DistillError(
            f"data.root={d.root}: a set that is not finished; the distill.prepare that began it "
            "goes on"
        )
    sides = find_pairs(root, None, d.val_fraction, d.split_seed)
    _check_some(root, sides["train"])
    if alpha:
        check_transparency(root, sides["train"], swap)
    common: dict[str, Any] = {"alpha": alpha, "swap": swap, "pad": d.pad}
    train = PairSet(
        sides["train"],
        d.size,
        train=True,
        crop_size=d.crop_size,
        flip=d.flip,
        seed=settings.seed,
        colour=d.colour,
        **common,
    )
    val = PairSet(sides["val"], d.crop_size, train=False, **common)
    return DistillData(train, val, d.batch_size, d.workers, d.val_limit)


def unpaired(settings: CycleGANTrain) -> DistillData:
    """Training and validation pictures of recipe=cyclegan, the latter at the side of the crops."""
    d = settings.data
    _check_sizes(d)
    root, a, b = (Path(folder) if folder else None for folder in (d.root, d.a, d.b))
    sides = find_unpaired(root, a, b, d.val_fraction, d.split_seed)
    _check_some(d.root, sides["train"][0])
    common: dict[str, Any] = {"crop_size": d.crop_size, "pad": d.pad}
    train = UnpairedSet(
        *sides["train"],
        d.size,
        train=True,
        flip=d.flip,
        seed=settings.seed,
        colour=d.colour,
        **common,
    )
    val = UnpairedSet(*sides["val"], d.crop_size, train=False, **common)
    return DistillData(train, val, d.batch_size, d.workers, d.val_limit)


def _check_some(root: Path | str | None, found: Sequence[object]) -> None:
    if not found:
        raise DistillError(f"{root}: has val/ but no train/, nothing to learn from")


def _check_sizes(data: Pictures) -> None:
    if data.size < data.crop_size:
        raise DistillError(
            f"data.size={data.size}: smaller than the crop taken from it, data.crop_size="
            f"{data.crop_size}; make it equal (no crop) or larger"
        )
