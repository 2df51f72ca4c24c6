"""Held-out photos with the teacher's, the student's and the ceiling's pictures of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from distill.config import compose
from distill.config.settings import EvalFid, Paired, PhotoSource, Prepare
from distill.config.trained import source_of
from distill.config.validate import check
from distill.core.errors import DistillError
from distill.core.images import as_bytes, as_float, batches, from_bytes, over_white
from distill.core.progress import bar
from distill.data import sources
from distill.data.augment import rng_for
from distill.data.datasets import PairSet
from distill.data.labelled.manifest import is_complete, read_manifest
from distill.data.layouts import Pair, find_pairs
from distill.data.photos import group_of
from distill.models import build

_PAIR_SUFFIX = re.compile(r"-[0-9a-f]{8}(-v\d+)?$")  # what Photo.pair_name adds to a stem


@dataclass(frozen=True)
class HeldOut:
    """Held-out pictures as 8-bit values, in one order: photo, teacher's and student's picture.

    `about` says whose they are, `titles` what the three are called: of pairs it is input, target
    and generator.
    """

    names: list[str]
    photo: Tensor
    teacher: Tensor
    student: Tensor
    ceiling: Tensor
    ceiling_name: str
    about: dict[str, Any]
    titles: tuple[str, str, str] = ("photo", "teacher", "student")

    @property
    def half(self) -> int:
        return len(self.names) // 2

    def rows(self, count: int) -> list[tuple[Tensor, ...]]:
        """The first pictures under `titles`, float in [0, 1], for a sheet."""
        three = zip(self.photo[:count], self.teacher[:count], self.student[:count], strict=True)
        return [tuple(as_float(picture) for picture in row) for row in three]


def held_out(student: nn.Module, trained: dict[str, Any], settings: EvalFid) -> HeldOut:
    """All held-out pairs with the student's pictures, shuffled once by name."""
    source = source_of(trained, settings.photos)
    root = sources.pairs_root(source)
    # A finished set whose photos are gone is taken as it is; otherwise it is checked against them.
    ours = source.data.root is None or read_manifest(root) is not None
    here = source.data.root is None and sources.has_photos(source)
    if here or (ours and not is_complete(root)):
        others = bool(settings.photos) and not _same(settings.photos or "", trained["photos"])
        root = _labelled(source, root, others)
    d = source.data
    pairs = find_pairs(root, source.style.name, d.val_fraction, d.split_seed)["val"]
    about = {key: trained[key]["name"] for key in ("style", "decoder")}
    photo, teacher = _read(pairs, source.style.resolution, alpha=trained["channels"] == 4)
    drawn = draw(student, photo, settings.batch_size, "student draws")
    ceiling, name = _ceiling(photo, settings, "photos")
    names = [pair.name for pair in sorted(pairs, key=_by_group)]
    return HeldOut(names, photo, teacher, drawn, ceiling, name, {"run": trained["run"]} | about)


def held_out_pairs(network: nn.Module, trained: dict[str, Any], settings: EvalFid) -> HeldOut:
    """The held-out pairs of a run of recipe=pix2pix, or of another folder of pairs."""
    other = {"root": settings.photos} if settings.photos else {}
    d = check(trained["data"] | other, Paired)
    if d.root is None:
        raise DistillError(
            "data.root=null: the run does not say which pairs; name them: photos=DIR"
        )
    pairs = find_pairs(Path(d.root), None, d.val_fraction, d.split_seed)["val"]
    alpha = trained["channels"] == 4
    photo, target = _read(pairs, d.crop_size, alpha, swap=d.direction == "BtoA", pad=d.pad)
    drawn = draw(network, photo, settings.batch_size, "generator draws")
    ceiling, name = _ceiling(photo, settings, "inputs")
    about = {"run": trained["run"], "recipe": "pix2pix", "generator": trained["generator"]["name"]}
    titles = ("input", "target", "generator")
    names = [pair.name for pair in sorted(pairs, key=_by_group)]
    return HeldOut(names, photo, target, drawn, ceiling, name, about, titles)


def _labelled(source: PhotoSource, root: Path, others: bool) -> Path:
    """The set with every held-out pair; a finished one without its teacher, where that is gone."""
    try:
        labels = build.load_teacher(source.style, source.teacher)
    except DistillError as error:
        if others or not is_complete(root):
            raise
        print(f"{root}: taken as it is, without a look at its photos: {error}")
        return root
    return sources.prepare_held_out(source, labels, all_of_them=others)


def _same(photos: str, trained: str | list[str]) -> bool:
    return not isinstance(trained, list) and Path(photos).resolve() == Path(trained).resolve()


def _by_group(pair: Pair) -> tuple[float, str]:
    """Shuffles groups, not pictures: one person's pictures stay in one half."""
    group = group_of(_PAIR_SUFFIX.sub("", Path(pair.name).stem))
    return rng_for("half", group).random(), pair.name


def _read(pairs: Iterable[Pair], size: int, alpha: bool, **how: Any) -> tuple[Tensor, Tensor]:
    """Photos and targets in the order of their groups, 8-bit: a quarter of the memory of floats."""
    data = PairSet(sorted(pairs, key=_by_group), size, train=False, alpha=alpha, **how)
    photos, targets = [], []
    for i in range(len(data)):
        sample = data[i]
        photos.append(sample["photo"].permute(2, 0, 1).contiguous())
        targets.append(as_bytes(over_white(from_bytes(sample["target"])[None])[0]))
    return torch.stack(photos), torch.stack(targets)


def _ceiling(photo: Tensor, settings: EvalFid, given: str) -> tuple[Tensor, str]:
    if settings.ceiling == "photos":
        return photo, f"{given}(B)"
    if settings.ceiling not in compose.choices("style"):
        known = ", ".join(["photos", *compose.choices("style")])
        raise DistillError(f"ceiling={settings.ceiling}: no such style; allowed: {known}")
    other = compose.load("prepare", [f"style={settings.ceiling}"], Prepare)
    teacher = build.load_teacher(other.style, other.teacher).fast()
    drawn = draw(teacher, photo, settings.batch_size, f"{settings.ceiling} draws")
    return drawn, f"{settings.ceiling}(B)"


@torch.inference_mode()
def draw(network: nn.Module, photos: Tensor, batch_size: int, what: str) -> Tensor:
    """What a network draws of 8-bit photos (n, 3, H, W), as such; transparency over white."""
    parts = []
    with bar(len(photos), " pictures", what, leave=False) as progress:
        for batch in batches(photos, batch_size):
            parts.append(as_bytes(over_white(network(batch))))
            progress.update(len(batch))
    return torch.cat(parts)
