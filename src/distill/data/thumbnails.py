"""Thumbnails of photos, by which near-duplicates are found: made once, kept in the cache.

Of the upright photo's centre square, grey: one of 16×16 and one of 32×32 pixels. Measured at
0.4 ms a photo of 250×250 and 1,300 bytes in the cache.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from distill.core.engine import HERE, Engine
from distill.core.errors import DistillError
from distill.core.progress import bar
from distill.data.decode import KINDS, to_rgb
from distill.data.listing import StoredPhoto
from distill.data.photos import MAX_PIXELS, Photo, PhotoFile, centre_box, open_photo, upright
from distill.data.row_cache import cache_file, load_rows, row_id, save_rows

SMALL, LARGE = 16, 32  # pixels a side
SAVE_EVERY = 2000  # photos
PART = 250  # made at once: one task of an engine
WAITING = 8  # threads at least, of photos at an address: they wait for the store
THUMBNAIL = np.dtype([("small", "u1", (SMALL, SMALL)), ("large", "u1", (LARGE, LARGE))])
_ROW = np.dtype([("id", "V16"), ("thumbnail", THUMBNAIL)])

_OPENERS = sorted(KINDS - {"MPO"})  # which the opener of JPEG opens

Thumbnails = NDArray[np.void]  # (n,) of THUMBNAIL; all zero where a photo cannot be read


def thumbnails(photos: Sequence[Photo], source: str, engine: Engine = HERE) -> Thumbnails:
    """The thumbnail of every photo, from the cache where name, size and time are the same.

    `source` names the cache; `engine` makes what it does not have.
    """
    file, rows = cache_file("thumbnails", source), np.zeros(len(photos), _ROW)
    rows["id"] = [identity(photo) for photo in photos]
    known, missing = load_rows(file, _ROW), []
    for i, row in enumerate(rows):
        if (there := known.get(row["id"].tobytes())) is None:
            missing.append(i)
        else:
            row["thumbnail"] = there["thumbnail"]

    def save() -> None:
        """What could not be read is tried again; a cache may fail."""
        with suppress(OSError):
            save_rows(file, rows[rows["thumbnail"]["small"].any((1, 2))])

    if not missing:
        return rows["thumbnail"]
    # Pillow warns of large pictures; `thumbnail` checks their size. All threads share one filter.
    with (
        warnings.catch_warnings(),
        bar(len(missing), "photo", "near-duplicates", leave=False) as progress,
    ):
        warnings.simplefilter("ignore")
        step, saved = min(PART, SAVE_EVERY), 0
        parts = [missing[start : start + step] for start in range(0, len(missing), step)]
        paths = ([photos[i].path.absolute() for i in part] for part in parts)
        found = engine.map(partial(thumbnails_of, threads=engine.threads), paths)
        for part, made in zip(parts, found, strict=True):
            rows["thumbnail"][part] = made
            progress.update(len(part))
            if progress.n - saved >= SAVE_EVERY:
                save()
                saved = progress.n
        save()
    return rows["thumbnail"]


def thumbnails_of(paths: Sequence[PhotoFile], threads: int) -> Thumbnails:
    """The thumbnail of every file."""
    if any(isinstance(path, StoredPhoto) for path in paths):
        threads = max(threads, WAITING)
    with warnings.catch_warnings(), ThreadPoolExecutor(threads) as pool:
        warnings.simplefilter("ignore")
        return np.stack(list(pool.map(thumbnail, paths)))


def thumbnail(path: PhotoFile) -> Thumbnails:
    """() of THUMBNAIL: the upright photo's centre square, all zero for what cannot be read."""
    made = np.zeros((), THUMBNAIL)
    try:
        with open_photo(path) as stream, Image.open(stream, formats=_OPENERS) as image:
            if image.width * image.height > MAX_PIXELS:
                return made
            image.draft("L", (4 * SMALL, 4 * SMALL))  # a large JPEG is decoded at an eighth
            whole = upright(image)
            whole.info.pop("icc_profile", None)  # changes too little to matter here
            grey = to_rgb(whole).convert("L")
        box = centre_box(grey.size, 1.0)
        pixels = {
            name: np.asarray(grey.resize((size, size), Image.Resampling.BILINEAR, box=box))
            for name, size in (("large", LARGE), ("small", SMALL))
        }
    except DistillError:
        raise
    except Exception:  # decoders raise whatever a damaged file makes them raise
        return made
    for name, square in pixels.items():
        made[name] = square
    return made


def identity(photo: Photo) -> bytes:
    """16 bytes that change when the file does; of one at an address as its listing has it."""
    if isinstance(photo.path, StoredPhoto):
        text = f"{photo.key}\0{photo.path.size}\0{photo.path.stamp}"
    else:
        try:
            found = photo.path.stat()
        except OSError:
            return bytes(16)
        text = f"{photo.key}\0{found.st_size}\0{found.st_mtime_ns}"
    return row_id(text)
