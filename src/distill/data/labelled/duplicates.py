"""Near-duplicates: photos whose small grey pictures correlate, one of them perhaps mirrored.

The thumbnail is the centre square at 16×16, grey. Measured on 4,600 aligned faces (LFW), 525
portraits with known copies and 669 other pictures: among 10.6 million pairs of different persons
three are above 0.95, and 172 of 178 portraits with a copy are found, at 0.4 ms a photo. At 8×8
there are 96 such pairs, at 32×32 a copy less is found, and colour changes neither.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from distill.core.files import atomic_write, cache_folder
from distill.core.progress import bar
from distill.data.decode import KINDS, check_file, to_rgb
from distill.data.labelled.split import NO_EDGES, Edges
from distill.data.photos import MAX_PIXELS, Photo, upright

SIDE = 16
ALIKE = 0.95  # correlation above which two photos are near-duplicates
FLAT = 1.0  # grey levels of deviation below which a picture shows nothing to compare
BLOCK = 2048  # photos compared at once with as many others: 16 MiB of correlations
SAVE_EVERY = 2000  # photos
_ROW = np.dtype([("id", "V16"), ("picture", "u1", (SIDE, SIDE))])

_OPENERS = sorted(KINDS - {"MPO"})  # which the opener of JPEG opens

Thumbnails = NDArray[np.uint8]  # (n, 16, 16); all zero where a photo cannot be read


def find_near_duplicates(photos: Sequence[Photo], source: str) -> Edges:
    """Every pair of near-duplicates, as indices (smaller, larger). `source` names the cache."""
    return similar_pairs(thumbnails(photos, source))


def thumbnails(photos: Sequence[Photo], source: str) -> Thumbnails:
    """The thumbnail of every photo, from the cache where name, size and time are the same."""
    digest = hashlib.sha256(source.encode(errors="surrogateescape")).hexdigest()
    file = cache_folder() / "thumbnails" / f"{digest[:16]}.npy"
    rows = np.zeros(len(photos), _ROW)
    rows["id"] = [_identity(photo) for photo in photos]
    at = {row["id"].tobytes(): row["picture"] for row in _load(file)}
    missing = []
    for i, row in enumerate(rows):
        if (known := at.get(row["id"].tobytes())) is None:
            missing.append(i)
        else:
            row["picture"] = known
    _make(photos, rows, missing, file)
    return rows["picture"]


def _make(photos: Sequence[Photo], rows: np.ndarray, missing: Sequence[int], file: Path) -> None:
    """Make the missing thumbnails; a kill loses at most `SAVE_EVERY` of them."""
    if not missing:
        return
    # Pillow warns of large pictures; `thumbnail` checks their size. All threads share one filter.
    with (
        warnings.catch_warnings(),
        bar(len(missing), " photos", "near-duplicates", leave=False) as progress,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        warnings.simplefilter("ignore")
        for start in range(0, len(missing), SAVE_EVERY):
            part = missing[start : start + SAVE_EVERY]
            paths = (photos[i].path for i in part)
            for i, picture in zip(part, pool.map(thumbnail, paths), strict=True):
                rows["picture"][i] = picture
                progress.update()
            _save(file, rows)


def thumbnail(path: Path) -> NDArray[np.uint8]:
    """(16, 16), grey: the upright photo's centre square, all zero for what cannot be read."""
    try:
        check_file(path)
        with Image.open(path, formats=_OPENERS) as image:
            if image.width * image.height > MAX_PIXELS:
                return np.zeros((SIDE, SIDE), np.uint8)
            image.draft("L", (4 * SIDE, 4 * SIDE))  # a large JPEG is decoded at an eighth
            whole = upright(image)
            whole.info.pop("icc_profile", None)  # changes too little to matter here
            grey = to_rgb(whole).convert("L")
            side = min(grey.size)
            left, top = (grey.width - side) / 2, (grey.height - side) / 2
            box = (left, top, left + side, top + side)
            return np.asarray(grey.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=box))
    except Exception:  # decoders raise whatever a damaged file makes them raise
        return np.zeros((SIDE, SIDE), np.uint8)


def similar_pairs(pictures: Thumbnails) -> Edges:
    """The pairs whose correlation, straight or mirrored, is above `ALIKE`; block by block.

    A picture is the sum of its even part and its odd part under mirroring. With e and o the
    products of two pictures' parts, their correlation is e + o, and e − o with one mirrored.
    """
    found = [NO_EDGES]
    for i in range(0, len(pictures), BLOCK):
        even, odd = _parts(pictures[i : i + BLOCK])
        for j in range(i, len(pictures), BLOCK):
            even_j, odd_j = _parts(pictures[j : j + BLOCK])
            alike = even @ even_j.T + (odd @ odd_j.T).abs_() > ALIKE
            near = alike.nonzero().int() + torch.tensor([i, j], dtype=torch.int32)
            found.append(near[near[:, 0] < near[:, 1]].numpy())
    return np.concatenate(found)


def _parts(pictures: Thumbnails) -> tuple[Tensor, Tensor]:
    """Even and odd part of each picture, of mean zero and norm one together: (n, 128) each."""
    values = torch.from_numpy(pictures).float()
    values = values - values.mean((1, 2), keepdim=True)
    norm = values.square().sum((1, 2), keepdim=True).sqrt()
    values = torch.where(norm > FLAT * SIDE, values / norm.clamp(min=FLAT), 0.0)
    left, right = values[..., : SIDE // 2], values.flip(-1)[..., : SIDE // 2]
    scale = 0.5**0.5  # both halves of a part are equal but for the sign
    return ((left + right) * scale).flatten(1), ((left - right) * scale).flatten(1)


def _identity(photo: Photo) -> bytes:
    """16 bytes that change when the file does."""
    try:
        found = photo.path.stat()
    except OSError:
        return bytes(16)
    text = f"{photo.key}\0{found.st_size}\0{found.st_mtime_ns}"
    return hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=16).digest()


def _load(file: Path) -> np.ndarray:
    with suppress(OSError, ValueError, EOFError):  # missing or damaged: made anew
        rows = np.load(file)
        if rows.dtype == _ROW:
            return rows
    return np.empty(0, _ROW)


def _save(file: Path, rows: np.ndarray) -> None:
    """Keep what is made. What could not be read is tried again; a cache may fail."""
    made = rows[rows["picture"].any((1, 2))]
    with suppress(OSError), atomic_write(file) as temporary, temporary.open("wb") as out:
        np.save(out, made)
