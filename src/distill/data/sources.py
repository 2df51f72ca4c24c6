"""Where pictures come from: photos, the teacher that labels them, and the set of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from distill.config.settings.training import PhotoSource, Train
from distill.core.errors import DistillError
from distill.data.labelled.lock import check_writable
from distill.data.labelled.manifest import Manifest, is_complete, manifest_at
from distill.data.labelled.set_builder import SetReport, build_set, split_for
from distill.data.labelled.teacher_pass import TeacherPass
from distill.data.photos import Photo, Side, demo_photos, find_all, folder_names
from distill.data.sampler import check_weights
from distill.models.teachers.teacher import Teacher


def photos(settings: PhotoSource) -> list[Photo]:
    """The photos of photos=DIR or photos=[DIR,DIR] and val_photos, or those of data=demo."""
    return demo_photos() if settings.data.kind == "demo" else find_all(*_folders(settings))


def has_photos(settings: PhotoSource) -> bool:
    """Whether the photos' folders are there, whatever is in them."""
    return all(folder.is_dir() for part in _folders(settings) for folder in part)


def _folders(settings: PhotoSource) -> tuple[list[Path], list[Path]]:
    """The folders for training (or both sides) and those for validation; none of data=demo."""
    if settings.data.kind == "demo":
        return [], []
    train, val = settings.photos, settings.val_photos or []
    first, second = ([each] if isinstance(each, str) else each for each in (train, val))
    return [Path(each) for each in first], [Path(each) for each in second]


def _folder_names(settings: PhotoSource) -> tuple[list[str], list[str]]:
    """The names of the same folders, all different; `demo` of data=demo."""
    train, val = _folders(settings)
    names = folder_names([*train, *val])
    return names[: len(train)] or ["demo"], names[len(train) :]


def training_folders(settings: PhotoSource) -> list[str]:
    """The names of the folders of photos that training takes from."""
    return _folder_names(settings)[0]


def set_name(settings: PhotoSource) -> str:
    """The photos' part in the name of a set: A+B, or A+B-val-C with folders for validation."""
    train, val = _folder_names(settings)
    return "+".join(train) + (f"-val-{'+'.join(val)}" if val else "")


def photos_in_manifest(settings: PhotoSource) -> dict[str, Any]:
    """What a manifest says of the photos and their split, by the names of its fields."""
    train, val = _folder_names(settings)
    where = [str(folder.resolve()) for part in _folders(settings) for folder in part]
    return {
        "photos": " + ".join(where) or "scikit-image",
        "val_fraction": 0.0 if val else settings.data.val_fraction,
        "seed": settings.data.split_seed,
        "folders": tuple(train) if len(train) > 1 or val else (),
        "val_folders": tuple(val),
    }


def drop_list(settings: PhotoSource) -> Path | None:
    """The file of drop=FILE, None without one."""
    return Path(settings.drop) if settings.drop else None


def check_photos(settings: PhotoSource, root: Path) -> None:
    """Raises DistillError for photos, a drop list or a folder for the set that cannot be used."""
    photos(settings)
    drop = drop_list(settings)
    if drop and not drop.is_file():
        raise DistillError(
            f"drop={drop}: no such file; write the pictures to leave out, one a line"
        )
    if not is_complete(root):
        check_writable(root)


def needs_labels(settings: Train) -> bool:
    """Whether the teacher is needed: always for photos on the fly, and for a set of ours that is
    not there yet or not complete. A folder of pairs of one's own is taken as it is."""
    if settings.data.kind == "photos" or settings.data.root is None:
        return True
    root = Path(settings.data.root)
    return not root.is_dir() or (manifest_at(root) is not None and not is_complete(root))


def check_labelling(settings: PhotoSource) -> None:
    """Raises DistillError as `check_photos`, and for data.weights of another number of folders.

    Before a teacher's weights are fetched or anything is computed.
    """
    check_photos(settings, pairs_root(settings))
    check_weights(settings.data.weights, len(training_folders(settings)))


def pairs_root(settings: PhotoSource) -> Path:
    """Where the set of pairs lies: data.root, or data/pairs/STYLE-PHOTOS-SIZE."""
    if settings.data.root:
        return Path(settings.data.root)
    style = settings.style
    crop = "" if settings.crop == 1 else f"-crop{round(settings.crop * 100)}"
    return Path("data/pairs") / f"{style.name}-{set_name(settings)}-{style.resolution}{crop}"


def manifest(settings: PhotoSource, teacher: Teacher) -> Manifest:
    """What decides every pixel of the set."""
    return Manifest(
        style=settings.style.name,
        teacher=teacher.fingerprint(),
        size=settings.style.resolution,
        crop=settings.crop,
        views=settings.data.views,
        colour=settings.data.colour,
        **photos_in_manifest(settings),
    )


def prepare(settings: PhotoSource, teacher: Teacher) -> SetReport:
    """Label what is missing of the settings' set and say what happened."""
    return _label(settings, teacher, photos(settings), pairs_root(settings), ("train", "val"))


def split_on_the_fly(settings: PhotoSource, teacher: Teacher) -> dict[Side, list[Photo]]:
    """The photos of both sides, as the set of their pairs would hold them."""
    root = pairs_root(settings)
    return split_for(photos(settings), manifest(settings, teacher), root, drop_list(settings))


def prepare_held_out(settings: PhotoSource, teacher: Teacher, all_of_them: bool) -> Path:
    """Label the held-out photos, or all of a folder that was not trained on; gives the set."""
    found, root = photos(settings), pairs_root(settings)
    if all_of_them:
        found = [replace(photo, side="val") for photo in found]
        root = root.with_name(f"{root.name}-held-out")
    _label(settings, teacher, found, root, ("val",))
    return root


def _label(
    settings: PhotoSource,
    teacher: Teacher,
    found: Sequence[Photo],
    root: Path,
    sides: Sequence[Side],
) -> SetReport:
    how, device = settings.label, settings.label.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    # One picture at a time is the fastest form of the teacher on a CPU (0.28 s against 0.35).
    batch_size = how.batch_size or (1 if device == "cpu" else 16)
    fast, made_with = teacher.fast(), manifest(settings, teacher)
    teacher_pass = TeacherPass(fast, made_with, batch_size, how.workers, device)
    report = build_set(found, teacher_pass, made_with, root, sides, drop_list(settings))
    print(report)
    return report
