"""Photos for an export: held-out ones to compare and measure on, training ones to calibrate on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from distill.config.settings import CycleGANTrain, Pix2PixTrain
from distill.config.trained import source_of
from distill.config.validate import fit
from distill.core.errors import DistillError
from distill.core.images import from_bytes, to_tensor
from distill.data import loaders, sources
from distill.data.datamodule import DistillData
from distill.data.datasets import UnpairedSet
from distill.data.layouts import Pair, Pairs, find_pairs
from distill.data.photos import BadPhoto, Photo, Side, centre_square, find_photos, read_photo
from distill.exporters.subject import Subject

PARITY = 4

MEASURED = 64

CALIBRATION = 96


@dataclass(frozen=True)
class Measured:
    """Photos (N, 3, S, S) and, where they are known, what was to be drawn (N, 3 or 4, S, S): the
    teacher's drawings, or a pair's other side."""

    photos: Tensor
    teacher: Tensor | None
    where: str


def measured(subject: Subject, folder: str | None) -> Measured:
    """At most 64 photos, spread over a folder, or the run's held-out pictures.

    A teacher drew at the run's resolution, so its drawings count at that size only.
    """
    size, trained = subject.side, subject.trained
    if folder:
        found = spread(find_photos(Path(folder)), MEASURED)
        return Measured(_stacked(_photos(found, size), f"photos={folder}"), None, folder)
    if subject.recipe != "distill":
        return _of_generator(held_out(subject))
    root, pairs = _pairs(trained, "val", "photos")
    same = size == trained["style"]["resolution"]
    both = list(_read(spread(pairs, MEASURED), size, trained["channels"] == 4))
    photos = _stacked((photo for photo, _ in both), str(root))
    return Measured(photos, torch.stack([t for _, t in both]) if same else None, root.name)


def _of_generator(found: Inputs) -> Measured:
    drawn, wanted = zip(*found.at(spread(range(len(found)), MEASURED)), strict=True)
    targets = torch.stack(wanted) if wanted[0] is not None else None
    return Measured(torch.stack(drawn), targets, Path(found.where).name)


def calibration(subject: Subject, folder: str | None) -> Tensor:
    """At most 96 photos (N, 3, S, S), spread over a folder, or over the run's training pictures."""
    if folder:
        photos = spread(find_photos(Path(folder), "calibration="), CALIBRATION)
        return _stacked(_photos(photos, subject.side), f"calibration={folder}")
    if subject.recipe != "distill":
        found = learnt(subject)
        drawn = found.at(list(range(min(len(found), CALIBRATION))))
        return _stacked((photo for photo, _ in drawn), found.where)
    root, pairs = _pairs(subject.trained, "train", "calibration")
    both = _read(spread(pairs, CALIBRATION), subject.side, False)
    return _stacked((photo for photo, _ in both), str(root))


def parity(subject: Subject, folder: str | None) -> Tensor:
    """Real photos (n, 3, S, S), the last one with a black border, where padding shows."""
    if folder is None and subject.recipe != "distill":
        found = held_out(subject)
        first = list(range(min(len(found), PARITY)))
        photos: Iterable[Tensor] = (photo for photo, _ in found.at(first))
    else:
        named = find_photos(Path(folder)) if folder else _validation_photos(subject.trained)
        photos = _photos(named, subject.side)
    pictures = list(islice(photos, PARITY))
    if not pictures:
        raise DistillError("no photo to compare PyTorch and ONNX Runtime on; name some: photos=DIR")
    framed = torch.zeros_like(pictures[0])
    edge = subject.side // 8
    framed[:, edge:-edge, edge:-edge] = pictures[0][:, edge:-edge, edge:-edge]
    return torch.stack([*pictures, framed])


def _validation_photos(trained: dict[str, Any]) -> list[Photo]:
    settings = source_of(trained)
    folder = sources.pairs_root(settings) / "val" / "photo"
    return find_photos(folder) if folder.is_dir() else sources.photos(settings)


def spread(items: Any, count: int) -> list[Any]:
    """At most `count` of a sequence, evenly from first to last: sets lie folder by folder."""
    chosen = np.linspace(0, len(items) - 1, min(count, len(items))).round().astype(int)
    return [items[int(i)] for i in chosen]


def _pairs(trained: dict[str, Any], side: Side, key: str) -> tuple[Path, Pairs]:
    source = source_of(trained)
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


class Inputs:
    """Pictures that a generator draws from, in order, read one at a time.

    Element i is its input (3, S, S) and, for pairs, what was wanted (3 or 4, S, S).
    `where` says whose pictures they are.
    """

    def __init__(self, found: Any, subject: Subject, where: str) -> None:
        self.found, self.where = found, where
        self.key = "photo"
        if isinstance(found, UnpairedSet):
            self.key = "a" if subject.direction == "AtoB" else "b"
        self.count = len(found.looks[self.key]) if self.key != "photo" else len(found)

    def __len__(self) -> int:
        return self.count

    def at(self, indices: list[int]) -> Iterator[tuple[Tensor, Tensor | None]]:
        for index in indices:
            item = self.found[index]
            target = from_bytes(item["target"]) if "target" in item else None
            yield from_bytes(item[self.key]), target


def held_out(subject: Subject) -> Inputs:
    """The validation side. Raises DistillError where its pictures are not here any more."""
    data, where = _data(subject, "photos")
    return Inputs(data.val, subject, where)


def learnt(subject: Subject) -> Inputs:
    """The training side, as the training saw it: cropped and mirrored."""
    data, where = _data(subject, "calibration")
    return Inputs(data.train, subject, where)


def _data(subject: Subject, key: str) -> tuple[DistillData, str]:
    """The run's data at the subject's size; `key` is the setting that names other pictures."""
    settings: Any = fit(  # it names classes, and may come from elsewhere
        subject.trained, Pix2PixTrain if subject.recipe == "pix2pix" else CycleGANTrain
    )
    side = subject.side
    at_side = replace(settings.data, crop_size=side, size=max(side, settings.data.size))
    settings = replace(settings, data=at_side)
    where = at_side.root or getattr(at_side, subject.direction[0].lower(), None) or "?"
    with suppress(DistillError):
        load: Any = loaders.paired if subject.recipe == "pix2pix" else loaders.unpaired
        data = load(settings)
        if len(data.val) and len(data.train):
            return data, where
    raise DistillError(f"{where}: the run's pictures are not here; name some with {key}=DIR")
