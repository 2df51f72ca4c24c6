"""Whole pictures in several sizes: which of them a photo is labelled at, and how it is scaled.

A size is the long side in pixels. The sides keep the photo's proportions, each rounded to a
multiple of 32, which students need, and at least 64.
"""

import hashlib
import io
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from distill.core.errors import DistillError, counted
from distill.core.progress import track
from distill.data.listing import StoredPhoto
from distill.data.manifest import Manifest
from distill.data.photos import Photo, Side, open_photo
from distill.data.thumbnails import WAITING, cache_file, identity, load_rows, save_rows

MULTIPLE, LEAST = 32, 64  # of a side, in pixels
ENLARGED = 1.15  # a photo is enlarged by no more than this
_HEAD = 2**16  # bytes of a stored photo that mostly hold its header
_ROW = np.dtype([("id", "V16"), ("long", "u4")])


def whole(image: Image.Image, size: int) -> Image.Image:
    """All of a picture with a long side of `size` (Lanczos)."""
    scale = size / max(image.size)
    width, height = (max(LEAST, round(side * scale / MULTIPLE) * MULTIPLE) for side in image.size)
    return image.resize((width, height), Image.Resampling.LANCZOS)


class WholePictures:
    """Which sizes each of a set's photos is labelled at.

    A photo is enlarged by 15 % at most. A held-out one is labelled at every size that this allows,
    one that is trained on at one of those that are larger than the centre squares, which a hash of
    its key chooses. `longest` is the long side of each photo in pixels by its key, 0 where the
    file cannot be read.
    """

    def __init__(self, manifest: Manifest, longest: Mapping[str, int]) -> None:
        self.sizes, self.square, self.longest = manifest.sizes, manifest.size, longest

    def of(self, photo: Photo, side: Side) -> list[int]:
        """The sizes of one photo, ascending; none where it is too small or cannot be read."""
        most = ENLARGED * self.longest.get(photo.key, 0)
        fitting = [size for size in self.sizes if size <= most]
        if side != "train":
            return fitting
        larger = [size for size in fitting if size > self.square]
        digest = hashlib.sha256(photo.key.encode(errors="surrogateescape")).hexdigest()
        return [larger[int(digest[:8], 16) % len(larger)]] if larger else []

    def check(self, root: Path | str, sides: Sequence[tuple[Photo, Side]]) -> None:
        """Say how many photos are too small. Raises DistillError where all to train on are."""
        larger = [size for size in self.sizes if size > self.square]
        if not larger:
            return
        trained, least = [photo for photo, side in sides if side == "train"], larger[0]
        small = sum(1 for photo in trained if not self.of(photo, "train"))
        needed = -int(-least // ENLARGED)
        if trained and small == len(trained):
            largest = max(self.longest.get(photo.key, 0) for photo in trained)
            raise DistillError(
                f"{root}: every training photo is smaller than data.sizes={[*self.sizes]}: "
                f"{least} needs {needed} pixels on the long side, the largest has {largest}; add "
                "larger photos, or smaller sizes"
            )
        if small:
            print(
                f"smaller than {needed} pixels on the long side: {small} of "
                f"{counted(len(trained), 'training photo')}, of which only the centre squares are "
                f"labelled, and no whole picture of {least} or more"
            )


def whole_pictures(
    photos: Sequence[tuple[Photo, Side]], manifest: Manifest, root: Path | str
) -> WholePictures:
    """The sizes of a set's photos, whose headers are read.

    Raises DistillError where every training photo is too small.
    """
    sizes = WholePictures(manifest, long_sides([photo for photo, _ in photos], manifest.photos))
    sizes.check(root, photos)
    return sizes


def long_sides(photos: Sequence[Photo], source: str) -> dict[str, int]:
    """The long side of every photo in pixels by its key, 0 where it cannot be read.

    From the cache, which `source` names, where name, size and time of the file are the same.
    """
    file = cache_file("long-sides", source)
    known = {name: int(row["long"]) for name, row in load_rows(file, _ROW).items()}
    each = [identity(photo) for photo in photos]
    missing = [i for i, name in enumerate(each) if name not in known]
    if missing:
        stored = any(isinstance(photos[i].path, StoredPhoto) for i in missing)
        with ThreadPoolExecutor(WAITING if stored else 1) as pool:
            sides = pool.map(_long_side, (photos[i] for i in missing))
            both = zip(missing, sides, strict=True)
            known |= {each[i]: n for i, n in track(both, len(missing), "photo", "sizes")}
        kept = [(name, known[name]) for name in dict.fromkeys(each) if known[name]]
        with suppress(OSError):  # a cache may fail
            save_rows(file, np.array(kept, _ROW))
    return {photo.key: known[name] for photo, name in zip(photos, each, strict=True)}


def _long_side(photo: Photo) -> int:
    """By the file's header alone; turning a photo upright changes which side it is, not how long
    it is."""
    path = photo.path
    try:
        if isinstance(path, StoredPhoto):
            head = path.folder.read_range(path.key, 0, _HEAD)
            with suppress(UnidentifiedImageError), Image.open(io.BytesIO(head)) as image:
                return max(image.size)
        with open_photo(path) as stream, Image.open(stream) as image:
            return max(image.size)
    except DistillError:
        raise
    except Exception:  # labelling says what is wrong with it
        return 0
