"""Where pictures come from: photos, the teacher that labels them, and the set of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from distill import config, weights
from distill.data.demo import demo_photos
from distill.data.labelling import Recipe, Report, label
from distill.data.photos import Photo, Side, find_photos
from distill.settings import Source, Style
from distill.teachers.base import Teacher
from distill.weights import WeightsFile


def teacher(style: Style, node: dict[str, Any]) -> Teacher:
    """The style's teacher with its weights found, verified and loaded."""
    if style.file is None and style.weights is None:
        return config.build(node)
    file = WeightsFile(style.file or "", style.url, style.sha256, style.git_blob)
    return config.build(node, weights=weights.find(file, style.weights, "style.weights"))


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


def prepare(settings: Source, of: Teacher, sides: Sequence[Side] = ("train", "val")) -> Report:
    """Label what is missing of the settings' set and say what happened."""
    device = _device(settings.label.device)
    report = label(
        photos(settings),
        of.fast(),
        recipe(settings, of),
        pairs_root(settings),
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
