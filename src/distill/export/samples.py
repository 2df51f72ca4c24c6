"""Photos for an export: held-out ones to compare and measure on, training ones to calibrate on."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from PIL import Image, ImageOps
from torch import Tensor

from distill.config.registry import Side
from distill.config.settings.training import PhotoSource
from distill.core.errors import DistillError
from distill.core.images import to_tensor
from distill.data import photo_folders
from distill.data.kinds.registry import data_source
from distill.data.pairs import find_pairs, read_in
from distill.data.photo_table import read_rows
from distill.data.photos import BadPhoto, Photo, demo_photos, find_photos, read_photo, spread
from distill.export.subject import Subject

PARITY, MEASURED, CALIBRATION = 4, 64, 96  # pictures at most, for each use
KEY = {"val": "photos", "train": "calibration"}  # the setting that names others instead


@dataclass(frozen=True)
class Samples:
    """Photos (N, 3, H, W) and, where they are known, their targets (N, 3 or 4, H, W): the
    teacher's output, or a pair's other side."""

    photos: Tensor
    target: Tensor | None
    where: str


@dataclass(frozen=True)
class RunPictures:
    """The pictures of one side of a run: `read` gives input (3, H, W) and, where it is known,
    target (3 or 4, H, W) by number, up to `count`. `where` says whose they are."""

    where: str
    count: int
    read: Callable[[int], tuple[Tensor, Tensor | None]]
    shuffled: bool = False

    def sample(self, most: int | None = None) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Those that can be read, of at most so many, evenly from first to last."""
        numbers: Sequence[int] = range(self.count)
        if most is not None:  # the first of a shuffled stream stand for all
            numbers = numbers[:most] if self.shuffled else spread(numbers, most)
        for number in numbers:
            with suppress(BadPhoto):
                yield self.read(number)


def photo_pictures(
    source: PhotoSource, side: Side, sides: tuple[int, int], channels: int
) -> RunPictures:
    """Those of a set that a teacher labelled; targets only at the size that they were made at.

    Of photos that it labelled on the fly the photos alone; of a student that learnt from a loader
    those of scikit-image, which are too few to calibrate on.
    """
    root, photos, where = data_source(source).folder, list[Photo](), "scikit-image"
    if not data_source(source).on_disk and side == "val":
        photos = demo_photos()
    elif source.data.kind == "photos" and photo_folders.has_photos(source):
        rows, where = read_rows(root), str(source.photos)
        sides_of = {name: row.side for name, row in rows.items()}
        every = photo_folders.photos(source)
        photos = [each for each in every if sides_of.get(each.pair_name) == side]
    if photos:
        return RunPictures(
            where, len(photos), lambda i: (_centre(read_photo(photos[i].path), sides), None)
        )
    if not root.is_dir():
        raise DistillError(
            f"{root}: the run's pairs are not here; name photos with {KEY[side]}=DIR"
        )
    d = source.data
    split = find_pairs(root, source.style.name, d.val_fraction, d.split_seed, d.test_fraction)
    pairs, same = split[side], {*sides} == {source.style.resolution}
    if not pairs:  # of a set that is no folder, the held-out ones alone are here
        what = "training" if side == "train" else "held-out"
        raise DistillError(
            f"{root}: no picture of the run ({what}) is here; name photos with {KEY[side]}=DIR"
        )

    def read(number: int) -> tuple[Tensor, Tensor | None]:
        photo, target = read_in(pairs[number], channels)
        return _centre(photo, sides), _centre(target, sides) if same else None

    return RunPictures(str(root), len(pairs), read)


def held_out(subject: Subject, folder: str | None) -> Samples:
    """At most 64 photos, spread over a folder, or the run's held-out pictures."""
    if folder:
        files = spread(find_photos(Path(folder)), MEASURED)
        return Samples(_stack(photos_of(files, subject.sides), f"photos={folder}"), None, folder)
    pictures = _pictures(subject, "val")
    both = list(pictures.sample(MEASURED))
    photos = _stack((photo for photo, _ in both), pictures.where)
    targets = [target for _, target in both if target is not None]
    return Samples(photos, torch.stack(targets) if targets else None, Path(pictures.where).name)


def calibration(subject: Subject, folder: str | None) -> Tensor:
    """At most 96 photos (N, 3, H, W), spread over a folder, or over the run's training pictures."""
    if folder:
        photos = spread(find_photos(Path(folder), "calibration="), CALIBRATION)
        return _stack(photos_of(photos, subject.sides), f"calibration={folder}")
    pictures = _pictures(subject, "train")
    return _stack((photo for photo, _ in pictures.sample(CALIBRATION)), pictures.where)


def parity(subject: Subject, folder: str | None) -> Tensor:
    """Real photos (n, 3, H, W), the last one with a black border, where padding shows.

    Those of scikit-image where the run's pairs and photos are not here.
    """
    source = subject.source
    gone = source and source.data.root is None and data_source(source).on_disk
    if folder:
        photos = photos_of(find_photos(Path(folder)), subject.sides)
    elif source and gone and not data_source(source).folder.is_dir():
        there = photo_folders.has_photos(source)
        photos = photos_of(photo_folders.photos(source) if there else demo_photos(), subject.sides)
    else:  # pairs that were named by their folder and are gone: photos=DIR need not be theirs
        photos = (photo for photo, _ in _pictures(subject, "val").sample())
    pictures = list(islice(photos, PARITY))
    if not pictures:
        raise DistillError("no photo to compare PyTorch and ONNX Runtime on; name some: photos=DIR")
    framed = torch.zeros_like(pictures[0])
    edge = min(subject.sides) // 8
    framed[:, edge:-edge, edge:-edge] = pictures[0][:, edge:-edge, edge:-edge]
    return torch.stack([*pictures, framed])


def photos_of(photos: Iterable[Photo], sides: tuple[int, int]) -> Iterator[Tensor]:
    """The centres (3, H, W) of those photos that can be read."""
    for photo in photos:
        with suppress(BadPhoto):
            yield _centre(read_photo(photo.path), sides)


def _pictures(subject: Subject, side: Side) -> RunPictures:
    if source := subject.source:
        return photo_pictures(source, side, subject.sides, subject.trained.channels)
    return subject.recipe.pictures(subject, side)


def _centre(image: Image.Image, sides: tuple[int, int]) -> Tensor:
    """As much of its centre as has the proportions, at this height and width."""
    size = sides[1], sides[0]
    lanczos = Image.Resampling.LANCZOS
    return to_tensor(image if image.size == size else ImageOps.fit(image, size, lanczos))


def _stack(pictures: Iterable[Tensor], where: str) -> Tensor:
    images = list(pictures)
    if not images:
        raise DistillError(f"{where}: none of its pictures can be read")
    return torch.stack(images)
