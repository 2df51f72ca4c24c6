"""Photos for an export: held-out ones to compare and measure on, training ones to calibrate on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from distill.config.registry import Direction, Side
from distill.config.settings.training import Adversarial, PhotoSource
from distill.config.validate import fit
from distill.core.errors import DistillError
from distill.core.images import from_pixels, to_tensor
from distill.data import loaders, sources
from distill.data.datamodule import DistillData, spread
from distill.data.datasets import UnpairedSet
from distill.data.pairs import find_pairs
from distill.data.photos import BadPhoto, Photo, centre_square, find_photos, read_photo
from distill.export.subject import Subject

PARITY, MEASURED, CALIBRATION = 4, 64, 96  # pictures at most, for each use
KEY = {"val": "photos", "train": "calibration"}  # the setting that names others instead


@dataclass(frozen=True)
class Samples:
    """Photos (N, 3, S, S) and, where they are known, their targets (N, 3 or 4, S, S): the
    teacher's output, or a pair's other side."""

    photos: Tensor
    target: Tensor | None
    where: str


class RunPictures(ABC):
    """The pictures of one side of a run, read one at a time: input (3, S, S) and, where it is
    known, target (3 or 4, S, S). `where` says whose they are."""

    where: str

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def at(self, indices: Iterable[int]) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Those of these numbers that can be read."""

    def some(self, count: int) -> Iterator[tuple[Tensor, Tensor | None]]:
        """At most `count` of them, evenly from first to last."""
        return self.at(spread(range(len(self)), count))


class LabelledPictures(RunPictures):
    """Those of a set that a teacher labelled; targets only at the size that they were made at."""

    def __init__(self, source: PhotoSource, side: Side, size: int, alpha: bool) -> None:
        root = sources.pairs_root(source)
        if not root.is_dir():
            raise DistillError(
                f"{root}: the run's pairs are not here; name photos with {KEY[side]}=DIR"
            )
        d = source.data
        sides = find_pairs(root, source.style.name, d.val_fraction, d.split_seed, d.test_fraction)
        self.pairs = sides[side]
        if not self.pairs:  # of shards, the held-out ones alone are unpacked
            what = "training" if side == "train" else "held-out"
            raise DistillError(
                f"{root}: no {what} pictures of the run are here; name photos with {KEY[side]}=DIR"
            )
        self.where, self.size, self.alpha = str(root), size, alpha
        self.same = size == source.style.resolution

    def __len__(self) -> int:
        return len(self.pairs)

    def at(self, indices: Iterable[int]) -> Iterator[tuple[Tensor, Tensor | None]]:
        for index in indices:
            with suppress(BadPhoto):
                photo, target = self.pairs[index].read(self.alpha)
                yield _square(photo, self.size), _square(target, self.size) if self.same else None


class LearntPictures(RunPictures):
    """Those of a run without a teacher, as its training or its validation sees them.

    `load` gives the run's data by its settings.
    """

    def __init__(
        self,
        load: Callable[[Any], DistillData],
        settings: Adversarial,
        side: Side,
        direction: Direction,
    ) -> None:
        d, domain = settings.data, direction[0].lower()
        self.where = d.root or getattr(d, domain, None) or "?"
        self.dataset: Any = ()
        with suppress(DistillError):
            data = load(settings)
            self.dataset = data.train if side == "train" else data.val
        if not len(self.dataset):
            raise DistillError(
                f"{self.where}: the run's pictures are not here; name some with {KEY[side]}=DIR"
            )
        self.shuffled = side == "train"
        self.key, self.count = "photo", len(self.dataset)
        if isinstance(self.dataset, UnpairedSet):
            self.key, self.count = domain, len(self.dataset.domains[domain])

    def __len__(self) -> int:
        return self.count

    def at(self, indices: Iterable[int]) -> Iterator[tuple[Tensor, Tensor | None]]:
        for index in indices:
            item = self.dataset[index]
            target = from_pixels(item["target"]) if "target" in item else None
            yield from_pixels(item[self.key]), target

    def some(self, count: int) -> Iterator[tuple[Tensor, Tensor | None]]:
        if self.shuffled:  # the first of a shuffled stream stand for all
            return self.at(range(min(len(self), count)))
        return super().some(count)


def measured(subject: Subject, folder: str | None) -> Samples:
    """At most 64 photos, spread over a folder, or the run's held-out pictures."""
    if folder:
        found = spread(find_photos(Path(folder)), MEASURED)
        named = _stacked(photos_of(found, subject.side), f"photos={folder}")
        return Samples(named, None, folder)
    pictures = _pictures(subject, "val")
    both = list(pictures.some(MEASURED))
    photos = _stacked((photo for photo, _ in both), pictures.where)
    targets = [target for _, target in both if target is not None]
    return Samples(photos, torch.stack(targets) if targets else None, Path(pictures.where).name)


def calibration(subject: Subject, folder: str | None) -> Tensor:
    """At most 96 photos (N, 3, S, S), spread over a folder, or over the run's training pictures."""
    if folder:
        photos = spread(find_photos(Path(folder), "calibration="), CALIBRATION)
        return _stacked(photos_of(photos, subject.side), f"calibration={folder}")
    pictures = _pictures(subject, "train")
    return _stacked((photo for photo, _ in pictures.some(CALIBRATION)), pictures.where)


def parity(subject: Subject, folder: str | None) -> Tensor:
    """Real photos (n, 3, S, S), the last one with a black border, where padding shows."""
    if folder:
        photos = photos_of(find_photos(Path(folder)), subject.side)
    else:
        photos = _held_out_photos(subject)
    pictures = list(islice(photos, PARITY))
    if not pictures:
        raise DistillError("no photo to compare PyTorch and ONNX Runtime on; name some: photos=DIR")
    framed = torch.zeros_like(pictures[0])
    edge = subject.side // 8
    framed[:, edge:-edge, edge:-edge] = pictures[0][:, edge:-edge, edge:-edge]
    return torch.stack([*pictures, framed])


def validation_photos(source: PhotoSource, size: int) -> Iterator[Tensor]:
    """The held-out photos (3, size, size) of a run's pairs, or all its photos where those are gone.

    Raises DistillError where pairs that were named by their folder are gone: photos=DIR need not be
    theirs.
    """
    if sources.pairs_root(source).is_dir() or source.data.root is not None:
        pictures = LabelledPictures(source, "val", size, alpha=False)
        return (photo for photo, _ in pictures.at(range(len(pictures))))
    return photos_of(sources.photos(source), size)


def photos_of(found: Iterable[Photo], size: int) -> Iterator[Tensor]:
    """The centre squares (3, size, size) of those photos that can be read."""
    for photo in found:
        with suppress(BadPhoto):
            yield _square(read_photo(photo.path), size)


def _held_out_photos(subject: Subject) -> Iterator[Tensor]:
    if source := subject.recipe.photo_source(subject.trained):
        return validation_photos(source, subject.side)
    pictures = _pictures(subject, "val")
    return (photo for photo, _ in pictures.at(range(len(pictures))))


def _pictures(subject: Subject, side: Side) -> RunPictures:
    trained, size = subject.trained, subject.side
    if source := subject.recipe.photo_source(trained):
        return LabelledPictures(source, side, size, trained["channels"] == 4)
    settings: Any = fit(trained, subject.recipe.settings)  # classes it names are not imported
    at_size = replace(settings.data, crop_size=size, size=max(size, settings.data.size))
    load = loaders.unpaired if subject.recipe.learns_from == "domains" else loaders.paired
    return LearntPictures(load, replace(settings, data=at_size), side, subject.direction)


def _square(image: Image.Image, size: int) -> Tensor:
    return to_tensor(image if image.size == (size, size) else centre_square(image, size))


def _stacked(pictures: Iterable[Tensor], where: str) -> Tensor:
    found = list(pictures)
    if not found:
        raise DistillError(f"{where}: none of its pictures can be read")
    return torch.stack(found)
