"""Thumbnails of photos, by which near-duplicates are found: made once, kept in the cache; compared.

Of the upright photo's centre square, grey: one of 16×16 and one of 32×32 pixels. Measured at
0.4 ms a photo of 250×250 and 1,300 bytes in the cache. They are correlated straight, mirrored, or
as discs rotated about the centre; what makes two pictures near-duplicates is in `duplicates`.
"""

import hashlib
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from distill.core.engine import HERE, Engine
from distill.core.errors import DistillError
from distill.core.files import atomic_write, cache_folder
from distill.core.progress import bar, track
from distill.data.decode import KINDS, BadPhoto, to_rgb
from distill.data.listing import StoredPhoto
from distill.data.photos import MAX_PIXELS, Photo, PhotoFile, centre_box, open_photo, upright


def cache_file(kind: str, source: str) -> Path:
    """Where rows of a kind are kept of the pictures that `source` names."""
    digest = hashlib.sha256(source.encode(errors="surrogateescape")).hexdigest()
    return cache_folder() / kind / f"{digest[:16]}.npy"


def load_rows(file: Path, kind: np.dtype) -> dict[bytes, np.void]:
    """The rows that are kept, by their field `id`; none where the file is missing, damaged or of
    an older version."""
    with suppress(OSError, ValueError, EOFError):
        rows = np.load(file)
        if rows.dtype == kind:
            return {row["id"].tobytes(): row for row in rows}
    return {}


def save_rows(file: Path, rows: np.ndarray) -> None:
    """Raises OSError."""
    with atomic_write(file) as temporary, temporary.open("wb") as out:
        np.save(out, rows)


def measured_rows(
    file: Path,
    kind: np.dtype,
    ids: Sequence[bytes],
    measure: Callable[[int, np.ndarray], None],
    shown: tuple[str, str],
) -> np.ndarray:
    """A row for each of `ids`, of those that `file` keeps or as `measure` fills it, by its number.

    What cannot be read stays as `measure` leaves it; what is new is kept, where that can be, every
    half a minute too. `shown` are unit and title of the progress bar.
    """
    known: dict[bytes, Any] = {**load_rows(file, kind)}
    missing = [i for i, each in enumerate(ids) if each not in known]
    saved = time.monotonic()
    for i in track(missing, len(missing), *shown):
        row = np.zeros((), kind)
        row["id"] = ids[i]
        with suppress(BadPhoto):  # training names it
            measure(i, row)
        known[ids[i]] = row
        if time.monotonic() - saved > SAVE_SECONDS or i == missing[-1]:
            with suppress(OSError):  # a cache may fail
                save_rows(file, np.array([*known.values()], kind))
            saved = time.monotonic()
    return np.array([known[each] for each in ids], kind)


def row_id(text: str) -> bytes:
    """16 bytes that stand for a text."""
    return hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=16).digest()


def id_of_files(paths: Iterable[Path], how: str = "") -> bytes:
    """16 bytes that change when one of the files does, or how they are measured."""
    for path in paths:
        with suppress(OSError):
            status = path.stat()
            how += f"\0{path}\0{status.st_size}\0{status.st_mtime_ns}"
    return row_id(how)


SMALL, LARGE = 16, 32  # pixels a side
SAVE_EVERY, SAVE_SECONDS = 2000, 30  # thumbnails; of measured pairs, which take longer
PART = 250  # made at once: one task of an engine
WAITING = 8  # threads at least, of photos at an address: they wait for the store
THUMBNAIL = np.dtype([("small", "u1", (SMALL, SMALL)), ("large", "u1", (LARGE, LARGE))])
_ROW = np.dtype([("id", "V16"), ("thumbnail", THUMBNAIL)])

ALIKE = 0.95  # correlation above which two photos are near-duplicates
ALIKE_TURNED = 0.96  # the same of discs, of which more angles are tried
SCREEN = 0.94  # and of discs at 8×8 that may be alike
ANGLES = range(-24, 25, 6)  # degrees
BETWEEN = (-3.0, -1.5, 0.0, 1.5, 3.0)  # degrees beside each of them
POOL = 4  # pixels of the large thumbnail to one of the screened disc
FLAT = 1.0  # grey levels of deviation below which a picture shows nothing to compare

_OPENERS = sorted(KINDS - {"MPO"})  # which the opener of JPEG opens

Parts = tuple[Tensor, Tensor]
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
    with bar(len(missing), "photo", "near-duplicates", leave=False) as progress:
        step, saved = min(PART, SAVE_EVERY), 0
        parts = [missing[start : start + step] for start in range(0, len(missing), step)]
        paths = ([photos[i].path.absolute() for i in part] for part in parts)
        results = engine.map(partial(thumbnails_of, threads=engine.threads), paths)
        for part, rows_of_part in zip(parts, results, strict=True):
            rows["thumbnail"][part] = rows_of_part
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
    # Pillow warns of large pictures; `thumbnail` checks their size. All threads share one filter.
    with warnings.catch_warnings(), ThreadPoolExecutor(threads) as pool:
        warnings.simplefilter("ignore")
        return np.stack(list(pool.map(thumbnail, paths)))


def thumbnail(path: PhotoFile) -> Thumbnails:
    """() of THUMBNAIL: the upright photo's centre square, all zero for what cannot be read."""
    row = np.zeros((), THUMBNAIL)
    try:
        with open_photo(path) as stream, Image.open(stream, formats=_OPENERS) as image:
            if image.width * image.height > MAX_PIXELS:
                return row
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
        return row
    for name, square in pixels.items():
        row[name] = square
    return row


def identity(photo: Photo) -> bytes:
    """16 bytes that change when the file does; of one at an address as its listing has it."""
    if isinstance(photo.path, StoredPhoto):
        text = f"{photo.key}\0{photo.path.size}\0{photo.path.stamp}"
    else:
        try:
            status = photo.path.stat()
        except OSError:
            return bytes(16)
        text = f"{photo.key}\0{status.st_size}\0{status.st_mtime_ns}"
    return row_id(text)


def floats(of: Thumbnails) -> Iterator[Tensor]:
    """The small and the large pictures of each thumbnail."""
    return (torch.from_numpy(np.ascontiguousarray(of[name])).float() for name in ("small", "large"))


def screened_parts(pictures: Tensor, angle: float = 0) -> Parts:
    """The parts of the discs of (n, S, S), rotated by `angle` degrees and reduced by `POOL`.

    (n, m) each, of the pixels that are inside the disc.
    """
    size, half = pictures.shape[-1] // POOL, pictures.shape[-1] // POOL // 2
    _, inside = _reduced_disc(pictures.shape[-1])
    means = pictures.flatten(1) @ _reduction(pictures.shape[-1], angle)
    even, odd = parts_of(means.view(-1, size, size), inside)
    shown = inside[:, :half].flatten() > 0
    return even[:, shown], odd[:, shown]


@cache
def _reduction(size: int, angle: float) -> Tensor:
    """(S·S, s·s): rotating, masking and reducing a picture are linear, so one product of matrices.

    A tenth of the time of doing them one after another, and the same to float precision.
    """
    single = torch.eye(size**2).view(-1, size, size)  # a picture for each pixel
    share, _ = _reduced_disc(size)
    means = F.avg_pool2d(rotated(single, angle) * disc_mask(size), POOL)
    return (means / share.clamp(min=1 / POOL**2)).flatten(1)


def _reduced_disc(size: int) -> Parts:
    """(s, s) each: a reduced pixel's share of the disc, and 1 where it counts as inside."""
    share = F.avg_pool2d(disc_mask(size)[None], POOL)[0]
    return share, (share > 0.5).float()


def rotated(pictures: Tensor, angle: float) -> Tensor:
    """(n, S, S) rotated about the centre by `angle` degrees, bilinearly."""
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    how, size = torch.tensor([[[cos, -sin, 0.0], [sin, cos, 0.0]]]), pictures.shape[-1]
    grid = F.affine_grid(how, [1, 1, size, size], align_corners=False)
    return F.grid_sample(pictures[None], grid, padding_mode="border", align_corners=False)[0]


def disc_mask(size: int) -> Tensor:
    """(size, size): 1 for each pixel whose centre is in the circle inside the square, else 0."""
    at = (torch.arange(size) + 0.5) * 2 / size - 1
    return (at[:, None] ** 2 + at**2 <= 1).float()


def parts_of(pictures: Tensor, mask: Tensor) -> Parts:
    """Even and odd part of each of (n, S, S), of mean zero and norm one together: (n, S·S/2) each.

    Of the pixels where `mask`, symmetric under mirroring, is 1. A picture is the sum of its even
    part and its odd part under mirroring.
    """
    half, count = pictures.shape[-1] // 2, mask.sum()
    means = (pictures * mask).sum((1, 2), keepdim=True) / count
    values = (pictures - means) * mask
    norm = values.square().sum((1, 2), keepdim=True).sqrt()
    values = torch.where(norm > FLAT * count.sqrt(), values / norm.clamp(min=FLAT), 0.0)
    left, right = values[..., :half], values.flip(-1)[..., :half]
    scale = 0.5**0.5  # both halves of a part are equal but for the sign
    return ((left + right) * scale).flatten(1), ((left - right) * scale).flatten(1)


def correlation(a: Parts, b: Parts) -> Tensor:
    """(n, m): the larger correlation of each two pictures, straight or with one mirrored.

    With e and o the products of two pictures' parts these are e + o and e − o.
    """
    return a[0] @ b[0].T + (a[1] @ b[1].T).abs_()
