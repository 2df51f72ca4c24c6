"""Where pictures come from: photos, the teacher that labels them, and the set of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from distill import config, nodes, weights
from distill.data.demo import demo_photos
from distill.data.labelling import Recipe, Report, label
from distill.data.photos import Photo, Side, find_photos
from distill.data.recipe import is_complete, read_manifest
from distill.errors import DistillError
from distill.settings import Source, Style, Train
from distill.teachers.base import Teacher
from distill.weights import WeightsFile


def teacher(style: Style, node: dict[str, Any]) -> Teacher:
    """The style's teacher with its weights found, verified and loaded."""
    if style.file is None and style.weights is None:
        return nodes.build(node)
    file = WeightsFile(style.file or "", style.url, style.sha256, style.git_blob)
    return nodes.build(node, weights=weights.find(file, style.weights, "style.weights"))


def source_of(trained: dict[str, Any], photos: str | None = None) -> Source:
    """The photos, teacher and set of a trained run, or the same with other photos."""
    kept = {
        key: trained[key] for key in ("crop", "style", "data", "label", "gka_layers", "teacher")
    }
    if photos:
        kept["data"] = kept["data"] | {"root": None, "kind": "pairs"}
    return config.check(kept | {"photos": photos or trained["photos"]}, Source)


def photos(settings: Source) -> list[Photo]:
    """The photos of photos=DIR, or those of data=demo."""
    if settings.data.kind == "demo":
        return demo_photos()
    return find_photos(Path(settings.photos))


def has_photos(settings: Source) -> bool:
    """Whether the photos' folder is there, whatever is in it."""
    return settings.data.kind == "demo" or Path(settings.photos).is_dir()


def needs_labels(settings: Train) -> bool:
    """Whether the teacher has to draw: always for photos on the fly, and for a set of ours that is
    not there yet or not complete. A folder of pairs of one's own is taken as it is."""
    if settings.data.kind == "photos" or settings.data.root is None:
        return True
    root = Path(settings.data.root)
    return not root.is_dir() or (read_manifest(root) is not None and not is_complete(root))


def check(settings: Train) -> None:
    """What is wrong with photos, pairs and channels, before anything is computed."""
    if not needs_labels(settings):
        return
    root = settings.data.root
    if root and not has_photos(settings):
        raise DistillError(
            f"data.root={root}: no such folder, and no photos={settings.photos} to make it from"
        )
    photos(settings)
    if settings.channels == 4:
        raise DistillError(
            "channels=4: the teacher draws RGB; name RGBA drawings of your own with data.root=DIR"
        )


def pairs_root(settings: Source) -> Path:
    """Where the set of pairs lies: data.root, or data/pairs/STYLE-PHOTOS-SIZE."""
    if settings.data.root:
        return Path(settings.data.root)
    demo = settings.data.kind == "demo"
    name = "demo" if demo else Path(settings.photos).resolve().name
    crop = "" if settings.crop == 1 else f"-crop{round(settings.crop * 100)}"
    return Path("data/pairs") / f"{settings.style.name}-{name}-{settings.style.resolution}{crop}"


def recipe(settings: Source, of: Teacher) -> Recipe:
    """What decides every pixel of the set."""
    demo = settings.data.kind == "demo"
    return Recipe(
        photos="scikit-image" if demo else str(Path(settings.photos).resolve()),
        style=settings.style.name,
        teacher=of.fingerprint(),
        size=settings.style.resolution,
        crop=settings.crop,
        views=settings.data.views,
        colour=settings.data.colour,
        val_fraction=settings.data.val_fraction,
        seed=settings.data.split_seed,
    )


def prepare(settings: Source, of: Teacher) -> Report:
    """Label what is missing of the settings' set and say what happened."""
    return _label(settings, of, photos(settings), pairs_root(settings), ("train", "val"))


def prepare_held_out(settings: Source, of: Teacher, all_of_them: bool) -> Path:
    """Label the held-out photos, or all of a folder that was not trained on; gives the set."""
    found, root = photos(settings), pairs_root(settings)
    if all_of_them:
        found = [replace(photo, side="val") for photo in found]
        root = root.with_name(f"{root.name}-held-out")
    _label(settings, of, found, root, ("val",))
    return root


def _label(
    settings: Source, of: Teacher, found: Sequence[Photo], root: Path, sides: Sequence[Side]
) -> Report:
    device = _device(settings.label.device)
    report = label(
        found,
        of.fast(),
        recipe(settings, of),
        root,
        sides=sides,
        # One picture at a time is the fastest form of the teacher on a CPU (0.28 s against 0.35).
        batch_size=settings.label.batch_size or (1 if device == "cpu" else 16),
        workers=settings.label.workers,
        device=device,
    )
    print(report)
    return report


def _device(name: str) -> str:
    if name != "auto":
        return name
    return "cuda" if torch.cuda.is_available() else "cpu"
