"""Datasets of pairs and photos; for training, a position in an endless stream."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import ConcatDataset, Dataset

from distill.config.settings.training import Pad
from distill.core.images import from_pixels, to_pixels, to_uint8
from distill.core.moved import moved_names
from distill.data.augment import (
    as_camera,
    as_square,
    random_cut,
    random_square,
    recolour,
    rng_for,
    zoomed_crop,
)
from distill.data.pairs import Pair, ReadablePair, read_in
from distill.data.photos import BadPhoto, Photo, PhotoFile, centre_square, read_photo
from distill.data.regions import Regions
from distill.data.sampler import MixedStreams, Share, StreamedSet, of_one_shape
from distill.data.shifts import Shifts, aligned_squares
from distill.models.students.global_statistics import THUMBNAIL, thumbnail_of

BLOCK = 8192  # positions in which squares and crops of whole pictures have their shares

# photo: uint8 (H, W, 3), name: str and, for pairs, target: uint8 (H, W, 1, 3 or 4), of sets of
# several sizes thumbnail: uint8 (256, 256, 3). Bytes as they lie in the file: a quarter of what
# floats take on their way from a worker. DistillData converts them.
Sample = dict[str, Any]
Squares = Sequence[Image.Image | Tensor]


@dataclass(eq=False, repr=False)
class PairSet(StreamedSet):
    """Pairs as {photo (H, W, 3), target (H, W, `channels`), name}, 8-bit; `channels` 1 are grey.

    With `train`, position p gives the picture p of an endless shuffled stream, its colours varied
    by `colour`, its size by `zoom`, cropped and mirrored, the same on both sides, then the photo's
    colours alone by `photo_colour`, and a share `camera` of the photos as cameras spoil them
    (`as_camera`); without, index p gives pair p as it is. What is not square is
    cut, or filled up with `pad` (see `as_square`). With `swap` photo and target change places. With
    `shifts`, a row a pair, the target is laid over the photo, and what only one of them shows is
    cut off. A pair that cannot be read is replaced by the next one and named once.

    Without a `size` pictures are whole, of any size, and training needs a `crop_size`: smaller ones
    count as such that cannot be read. With `thumbnail` a sample has one of the whole photo that the
    crop is of, {thumbnail (256, 256, 3)}; the photo's colours then vary before it is cropped.
    With `regions` it has the weights of its pixels, {region (H, W)}, see `Regions`; with `lines`
    the teacher's layer of lines, {lines (H, W)}.
    """

    what = "pair"

    pairs: Sequence[ReadablePair]
    size: int | None
    train: bool
    crop_size: int | None = None
    flip: bool = True
    channels: int = 3
    seed: object = 0
    shares: InitVar[Sequence[Share] | None] = None
    swap: bool = False
    pad: Pad | None = None
    colour: float = 0.0
    order: Callable[[int], int] | None = None
    shifts: Shifts | None = None
    zoom: float = 0.0
    photo_colour: float = 0.0
    camera: float = 0.0
    thumbnail: bool = False
    regions: Regions | None = None
    lines: bool = False

    def __post_init__(self, shares: Sequence[Share] | None) -> None:
        super().__init__(len(self.pairs), self.seed, self.train, shares, self.order)

    def __getitem__(self, position: int) -> Sample:
        index, (both, areas) = self.first_readable(position, self._read_layers)
        if self.train:
            pictures = self._augmented([*both, *areas], position)
        else:
            pictures = [*map(as_pixels, both), *areas]
            if self.thumbnail:
                pictures.append(thumbnail_pixels(pictures[0]))
        beside = {"region": self.regions, "lines": self.lines}
        names = ("photo", "target", *(name for name, used in beside.items() if used), "thumbnail")
        sample = dict(zip(names, pictures, strict=False))
        return sample | {"name": self.pairs[index].name}

    def shape(self, index: int) -> tuple[int, int]:
        """Height and width of picture `index` of a validation; 0 where that is not known."""
        return (self.size, self.size) if self.size else self.pairs[index].shape

    def path(self, index: int) -> Path | str:
        return self.pairs[index].photo

    def _read_layers(self, index: int) -> tuple[Squares, list[Tensor]]:
        """Both pictures, and uint8 (H, W) of what lies over them: weights, the layer of lines."""
        both, layers = self._read(index), []
        height, width = as_pixels(both[0]).shape[:2]
        if self.regions:
            layers.append(self.regions.levels(index, height, width))
        if self.lines:
            pair = self.pairs[index]
            assert isinstance(pair, Pair)
            layers.append(pair.lines(height, width))
        return both, layers

    def _read(self, index: int) -> Squares:
        pair = self.pairs[index]
        if self.size is None:
            return self._whole(pair)
        if self.shifts is not None:
            first, second = read_in(pair, self.channels, self.swap)
            return aligned_squares(first, second, self.shifts[index], self.size)
        both = self._as_stored(pair)
        if all(isinstance(each, Tensor) and each.shape[:2] == (self.size,) * 2 for each in both):
            return both
        return [as_square(as_picture(each), self.size, self.pad) for each in both]

    def _as_stored(self, pair: ReadablePair) -> Squares:
        """Both pictures, as tensors where they lie as such."""
        if self.channels == 3 and (arrays := pair.pixels(self.swap)):
            return [torch.from_numpy(array) for array in arrays]
        return read_in(pair, self.channels, self.swap)

    def _whole(self, pair: ReadablePair) -> Squares:
        """Both pictures as they are. Raises BadPhoto for sides that differ or are too small."""
        both = self._as_stored(pair)
        (width, height), other = (
            (each.shape[1], each.shape[0]) if isinstance(each, Tensor) else each.size
            for each in both
        )
        if other != (width, height):
            raise BadPhoto(f"{width}×{height} pixels, and its target {other[0]}×{other[1]}")
        if self.train and min(width, height) < (self.crop_size or 0):
            raise BadPhoto(f"{width}×{height} pixels: smaller than data.crop_size={self.crop_size}")
        return both

    def _augmented(self, pictures: Squares, position: int) -> list[Tensor]:
        if self.colour:  # the same numbers for both sides; what is grey has no colours
            both = 1 if self.channels == 1 else 2
            pictures = [
                recolour(as_picture(each), self.colour, rng_for(self.seed, "colour", position))
                for each in pictures[:both]
            ] + [*pictures[both:]]
        if self.thumbnail:  # by the whole photo: contrast goes by its mean
            pictures = [self._as_taken(pictures[0], position), *pictures[1:]]
        thumbnail = [thumbnail_pixels(as_pixels(pictures[0]))] if self.thumbnail else []
        rng = rng_for(self.seed, "augment", position)
        if self.zoom:
            side = self.crop_size or self.size
            assert side is not None
            pictures = zoomed_crop([*map(as_picture, pictures)], side, self.zoom, rng)
        photo, target, *layers = map(as_pixels, pictures)
        others = [target, *(layer.flatten(1) for layer in layers)]  # (H, W) each
        cut = random_cut(photo.shape, self.crop_size, self.flip, rng)
        photo, *others = map(cut.of, (photo, *others))
        if not self.thumbnail:
            photo = as_pixels(self._as_taken(photo, position))
        return [photo, *others, *map(cut.turned, thumbnail)]

    def _as_taken(self, photo: Image.Image | Tensor, position: int) -> Image.Image | Tensor:
        """The photo alone, in other light or by a worse camera."""
        if self.photo_colour:
            rng = rng_for(self.seed, "photo colour", position)
            photo = recolour(as_picture(photo), self.photo_colour, rng)
        rng = rng_for(self.seed, "camera", position)
        if self.camera and rng.random() < self.camera:
            photo = as_camera(as_picture(photo), rng)
        return photo


class MixedPairs(Dataset):
    """Training pictures of a set of several sizes: squares, and crops of whole pictures.

    Of all positions of the endless stream `share` are crops, in an order that `seed` decides; each
    kind comes in a stream of its own. Every `together` positions, those of a batch, are of one
    kind: where the two have different sides.
    """

    def __init__(
        self, squares: PairSet, whole: PairSet, share: float, seed: object, together: int = 1
    ) -> None:
        self.sets, self.together = (squares, whole), together
        crops = round(BLOCK * share)
        self.streams = MixedStreams([BLOCK - crops, crops], seed, "sizes")

    def __len__(self) -> int:
        return sum(map(len, self.sets))

    def __getitem__(self, position: int) -> Sample:
        batch, within = divmod(position, self.together)
        which, place = self.streams.place(batch)
        return self.sets[which][place * self.together + within]


class HeldOutPairs(ConcatDataset):
    """Validation pictures of a set of several sizes, each whole: the squares, then the others."""

    def batches(self, chosen: Sequence[int], most: int) -> list[list[int]]:
        """Those with these numbers, in batches of one shape and at most so many pixels."""
        shapes: list[tuple[int, int]] = []
        for number in chosen:
            part = bisect_right(self.cumulative_sizes, number)
            first = self.cumulative_sizes[part - 1] if part else 0
            shapes.append(self.datasets[part].shape(number - first))  # type: ignore[attr-defined]
        return [[chosen[place] for place in part] for part in of_one_shape(shapes, most)]


def thumbnail_pixels(photo: Tensor) -> Tensor:
    """A photo (H, W, 3) as (256, 256, 3), 8-bit, as students make it: see `thumbnail_of`."""
    if photo.shape[:2] == (THUMBNAIL, THUMBNAIL):
        return photo
    return to_uint8(thumbnail_of(from_pixels(photo)[None])[0]).movedim(0, -1).contiguous()


def as_picture(square: Image.Image | Tensor) -> Image.Image:
    """A picture of uint8 (H, W, C) or (H, W), or as it is."""
    if not isinstance(square, Tensor):
        return square
    values = square.numpy()
    return Image.fromarray(values[..., 0] if values.shape[2:] == (1,) else values)


def as_pixels(square: Image.Image | Tensor) -> Tensor:
    """A picture as uint8 (H, W, C), which it may be already."""
    return square if isinstance(square, Tensor) else to_pixels(square)


@dataclass(eq=False, repr=False)
class PhotoSet(StreamedSet):
    """Photos as {photo (S, S, 3), name}, 8-bit, to be labelled on the fly.

    With `train`: a random square of the photo with changed colours, which the position decides;
    the teacher sees what the student sees, so even colours may change. Without: centre squares.
    """

    what = "photo"

    photos: Sequence[Photo]
    size: int
    train: bool
    crop: float = 1.0
    colour: float = 0.2
    seed: object = 0
    shares: InitVar[Sequence[Share] | None] = None

    def __post_init__(self, shares: Sequence[Share] | None) -> None:
        super().__init__(len(self.photos), self.seed, self.train, shares)

    def __getitem__(self, position: int) -> Sample:
        index, image = self.first_readable(position, lambda i: read_photo(self.path(i)))
        rng = rng_for(self.seed, "augment", position)
        if self.train:
            square = random_square(image, self.size, self.crop, rng)
            square = recolour(square, self.colour, rng)
        else:
            square = centre_square(image, self.size, self.crop)
        return {"photo": to_pixels(square), "name": self.photos[index].key}

    def path(self, index: int) -> PhotoFile:
        return self.photos[index].path


if not TYPE_CHECKING:  # a checker would take any name
    __getattr__ = moved_names(__name__)
