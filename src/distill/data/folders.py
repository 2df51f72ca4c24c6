"""Several folders of photos as one source, and a folder that is for validation alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from distill.data.photos import Photo, Side, find_photos
from distill.errors import DistillError


def find_all(train: Sequence[Path], val: Sequence[Path]) -> list[Photo]:
    """The photos of all folders; those of several are told apart by their folder's name.

    Without `val` every photo may fall on either side; with it, each belongs where its folder says.
    Raises DistillError for a folder that is missing, empty or named twice.
    """
    if len(train) == 1 and not val:
        return find_photos(train[0])
    _check_different([*train, *val])
    names = folder_names([*train, *val])
    own: Side | None = "train" if val else None
    found = [_inside(*each, own, "photos=") for each in zip(names, train, strict=False)]
    held_out = zip(names[len(train) :], val, strict=True)
    found += [_inside(*each, "val", "val_photos=") for each in held_out]
    return [photo for photos in found for photo in photos]


def _inside(name: str, folder: Path, side: Side | None, key: str) -> list[Photo]:
    return [
        replace(photo, key=f"{name}/{photo.key}", side=side, folder=name)
        for photo in find_photos(folder, key)
    ]


def folder_names(folders: Sequence[Path]) -> list[str]:
    """The folders' own names, with a number behind one that is there already."""
    names: list[str] = []
    for folder in folders:
        name = folder.resolve().name or "root"
        taken = (f"{name}-{n}" if n > 1 else name for n in range(1, len(folders) + 2))
        names.append(next(each for each in taken if each not in names))
    return names


def _check_different(folders: Sequence[Path]) -> None:
    resolved = [folder.resolve() for folder in folders]
    for i, folder in enumerate(resolved):
        if folder in resolved[:i]:
            raise DistillError(
                f"{folders[i]}: named twice; its photos would be in the set twice, or on both sides"
            )
