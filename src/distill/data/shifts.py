"""data.align=true: targets that are a few pixels off are shifted onto their photos.

A target shares its edges with the photo, not its colours: what is compared is the strength of the
gradient of the luma, blurred, by the phase of both spectra (Kuglin and Hines 1975; refined by
Guizar-Sicairos et al. 2008, scikit-image). Every pair is registered once; the cache keeps its
shift. Reading a pair then cuts what both show out of each, at the fraction of a pixel, while it is
scaled: nothing is resampled twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from distill.config.settings.training import Pad, SplitConfig
from distill.core.errors import DistillError
from distill.core.files import real_path
from distill.core.images import REC_601
from distill.core.progress import bar
from distill.data.pairs import ReadablePair
from distill.data.photos import BadPhoto, centre_square
from distill.data.thumbnails import cache_file, id_of_files, load_rows, save_rows

LEAST = 0.4  # agreement of outlines below which a pair is left as it is
SAVE_EVERY = 500  # pairs

_ROW = np.dtype([("id", "V16"), ("down", "f4"), ("right", "f4")])
Shifts = NDArray[np.float32]  # (n, 2): down and right, in sides of the centre square


def shifts_with(
    d: SplitConfig,
    root: Path,
    pairs: Sequence[ReadablePair],
    swap: bool = False,
    pad: Pad | None = None,
) -> Shifts | None:
    """With data.align=true how far each target of a folder of pairs lies off; else None.

    Raises DistillError where `pad` is asked for, too.
    """
    if not d.align:
        return None
    if pad is not None:
        raise DistillError(
            f"data.align=true: cuts to what both pictures show, so nothing is filled up; leave "
            f"data.pad={pad} out"
        )
    return shifts_of(pairs, root, swap)


def shifts_of(pairs: Sequence[ReadablePair], root: Path, swap: bool = False) -> Shifts:
    """How far each pair's second picture lies off its first; 0 where they do not agree.

    `root` names the cache. With `swap` photo and target change places, as in `ReadablePair.read`.
    """
    kept, rows = cache_file("shifts", str(real_path(root))), np.zeros(len(pairs), _ROW)
    known = load_rows(kept, _ROW)
    files = ((pair.photo, getattr(pair, "target", None)) for pair in pairs)
    rows["id"] = [id_of_files(path for path in two if isinstance(path, Path)) for two in files]
    missing = [i for i, row in enumerate(rows) if row["id"].tobytes() not in known]
    with bar(len(missing), "pair", "aligning", leave=False) as progress:
        for count, i in enumerate(missing, 1):
            with suppress(BadPhoto):  # training names it
                photo, target = (np.asarray(centre_square(each, SIDE)) for each in pairs[i].read())
                found = register(photo, target)
                if found.agreement >= LEAST:
                    rows[i]["down"], rows[i]["right"] = found.down / SIDE, found.right / SIDE
            known[rows[i]["id"].tobytes()] = rows[i]
            progress.update()
            if count % SAVE_EVERY == 0 or count == len(missing):
                with suppress(OSError):  # a cache may fail
                    save_rows(kept, np.array([*known.values()], _ROW))
    for i, row in enumerate(rows):
        rows[i] = known[row["id"].tobytes()]
    shifts = np.stack([rows["down"], rows["right"]], 1)
    return -shifts if swap else shifts


def aligned_squares(
    first: Image.Image, second: Image.Image, shift: NDArray[np.float32], size: int
) -> list[Image.Image]:
    """The largest square of both centre squares that shows the same, at size×size (Lanczos).

    `shift` is a row of `shifts_of`: where `second` lies off `first`.
    """
    down, right = map(float, shift)
    side = 1 - max(abs(down), abs(right))
    top, left = (max(0.0, -off) + (1 - abs(off) - side) / 2 for off in (down, right))
    return [
        _cut(first, top, left, side, size),
        _cut(second, top + down, left + right, side, size),
    ]


def _cut(image: Image.Image, top: float, left: float, side: float, size: int) -> Image.Image:
    """A square of the centre square, in sides of it."""
    whole = min(image.size)
    x, y = (image.width - whole) / 2 + left * whole, (image.height - whole) / 2 + top * whole
    box = (max(0.0, x), max(0.0, y), x + side * whole, y + side * whole)
    box = (*box[:2], min(image.width, box[2]), min(image.height, box[3]))  # of rounding
    return image.resize((size, size), Image.Resampling.LANCZOS, box=box)


SIDE = 256  # pixels of the squares that are compared
FARTHEST = 12.0  # pixels; what seems to lie further off is taken for another picture
FINE, COARSE = 1.5, 6.0  # pixels of blur: outlines; where light and dark areas meet
FLAT = 1e-6  # deviation of the edges of a picture that has none
STEPS = 20  # parts of a pixel that are told apart
ROUNDS = 3  # the window pulls towards no shift at all: a shifted picture is measured again

Pixels = NDArray[np.uint8]
Grey = NDArray[np.float64]


@dataclass(frozen=True)
class Registration:
    """How far the target lies below (`down`) and to the right of its photo, in pixels at SIDE.

    `agreement` is the correlation of their edges once it is put back, -1 to 1; of a flat picture,
    and of one that fits nowhere, it is that of the pair as it is, with no shift.
    """

    down: float
    right: float
    agreement: float


def register(photo: Pixels, target: Pixels, blur: float = FINE) -> Registration:
    """Measure a pair of squares, uint8 (SIDE, SIDE, 3)."""
    from skimage.registration import phase_cross_correlation  # heavy: SciPy comes with it

    first, second = (_edges(each, blur) for each in (photo, target))
    window = np.outer(np.hanning(SIDE), np.hanning(SIDE))
    if min(first.std(), second.std()) < FLAT:
        return Registration(0.0, 0.0, 0.0)
    shift = np.zeros(2)
    for _ in range(ROUNDS):
        moved = _moved(second, -shift)
        windowed = ((each - each.mean()) * window for each in (first, moved))
        found, _, _ = phase_cross_correlation(*windowed, upsample_factor=STEPS, normalization=None)
        shift = shift - found
        if np.hypot(*shift) > FARTHEST:
            return Registration(0.0, 0.0, _agreement(first, second))
        if np.abs(found).max() < 1.5 / STEPS:
            break
    agreement = _agreement(first, _moved(second, -shift))
    as_it_is = _agreement(first, second)
    if agreement <= as_it_is:
        return Registration(0.0, 0.0, as_it_is)
    return Registration(float(shift[0]), float(shift[1]), agreement)


def _edges(picture: Pixels, blur: float) -> Grey:
    from scipy import ndimage

    grey = picture @ (np.array(REC_601) / 255)
    return ndimage.gaussian_gradient_magnitude(grey, blur, mode="nearest")


def _moved(edges: Grey, shift: NDArray[np.float64]) -> Grey:
    """Moved down and right by `shift` pixels, linearly; edges are blurred already."""
    from scipy import ndimage

    return ndimage.shift(edges, shift, order=1, mode="nearest") if shift.any() else edges


def _agreement(first: Grey, second: Grey) -> float:
    """The correlation of both, without the rim that a shift may bring in from outside."""
    rim = int(FARTHEST)
    a, b = (each[rim:-rim, rim:-rim].ravel() for each in (first, second))
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / norm if norm > FLAT**2 else 0.0  # where only the rim shows anything
