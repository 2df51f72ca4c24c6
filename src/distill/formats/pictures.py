"""Photos for a student's formats: held-out ones to measure on, training ones to calibrate on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from distill import sources
from distill.data.layouts import Pair, Pairs, find_pairs
from distill.data.photos import BadPhoto, Photo, Side, centre_square, find_photos, read_photo
from distill.data.pictures import to_tensor
from distill.errors import DistillError

MEASURED = 64
CALIBRATION = 96


@dataclass(frozen=True)
class Measured:
    """Photos (N, 3, S, S) and, where they are known, the teacher's drawings (N, 3 or 4, S, S)."""

    photos: Tensor
    teacher: Tensor | None
    where: str


def measured(trained: dict[str, Any], folder: str | None, size: int) -> Measured:
    """At most 64 photos, spread over a folder, or the run's held-out pairs.

    The teacher drew at the run's resolution, so its drawings count at that size only.
    """
    if folder:
        found = spread(find_photos(Path(folder)), MEASURED)
        return Measured(_stacked(_photos(found, size), f"photos={folder}"), None, folder)
    root, pairs = _pairs(trained, "val", "photos")
    same = size == trained["style"]["resolution"]
    both = list(_read(spread(pairs, MEASURED), size, trained["channels"] == 4))
    photos = _stacked((photo for photo, _ in both), str(root))
    return Measured(photos, torch.stack([t for _, t in both]) if same else None, root.name)


def calibration(trained: dict[str, Any], folder: str | None, size: int) -> Tensor:
    """At most 96 photos (N, 3, S, S), spread over a folder, or over the run's training pairs."""
    if folder:
        photos = _photos(spread(find_photos(Path(folder), "calibration="), CALIBRATION), size)
        return _stacked(photos, f"calibration={folder}")
    root, pairs = _pairs(trained, "train", "calibration")
    drawn = _read(spread(pairs, CALIBRATION), size, False)
    return _stacked((photo for photo, _ in drawn), str(root))


def spread(items: Any, count: int) -> list[Any]:
    """At most `count` of a sequence, evenly from first to last: sets lie folder by folder."""
    chosen = np.linspace(0, len(items) - 1, min(count, len(items))).round().astype(int)
    return [items[int(i)] for i in chosen]


def _pairs(trained: dict[str, Any], side: Side, key: str) -> tuple[Path, Pairs]:
    source = sources.source_of(trained)
    root = sources.pairs_root(source)
    if not root.is_dir():
        raise DistillError(f"{root}: the run's pairs are not here; name photos with {key}=DIR")
    pairs = find_pairs(root, source.style.name, source.data.val_fraction, source.data.split_seed)
    return root, pairs[side]


def _read(pairs: Iterable[Pair], size: int, alpha: bool) -> Iterator[tuple[Tensor, Tensor]]:
    for pair in pairs:
        try:
            photo, target = pair.read(alpha)
        except BadPhoto:
            continue
        yield _square(photo, size), _square(target, size)


def _photos(found: Iterable[Photo], size: int) -> Iterator[Tensor]:
    for photo in found:
        try:
            yield _square(read_photo(photo.path), size)
        except BadPhoto:
            continue


def _square(image: Image.Image, size: int) -> Tensor:
    return to_tensor(image if image.size == (size, size) else centre_square(image, size))


def _stacked(pictures: Iterable[Tensor], where: str) -> Tensor:
    found = list(islice(pictures, CALIBRATION))
    if not found:
        raise DistillError(f"{where}: none of its pictures can be read")
    return torch.stack(found)
