"""data.align=true: targets that are a few pixels off are shifted onto their photos.

A target shares its edges with the photo, not its colours: what is compared is the direction of the
gradient of the luma, as a vector of twice its angle (Bigün and Granlund 1987), by correlation.
Every pair is registered once; the cache keeps its shift, where one is significant. Reading a pair
then cuts what both show out of each, at the fraction of a pixel, while it is scaled: nothing is
resampled twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from distill.core.files import real_path
from distill.core.images import REC_601
from distill.data.pairs import ReadablePair
from distill.data.photos import centre_square
from distill.data.thumbnails import cache_file, id_of_files, measured_rows

HOW = "directions"  # what is compared: the cache of another measure does not count

_ROW = np.dtype([("id", "V16"), ("down", "f4"), ("right", "f4")])
Shifts = NDArray[np.float32]  # (n, 2): down and right, in sides of the centre square


def shifts_of(pairs: Sequence[ReadablePair], root: Path, swap: bool = False) -> Shifts:
    """How far each pair's second picture lies off its first; 0 where it is not `shifted`.

    `root` names the cache. With `swap` photo and target change places, as in `ReadablePair.read`.
    """
    files = ((pair.photo, getattr(pair, "target", None)) for pair in pairs)
    ids = [id_of_files((p for p in two if isinstance(p, Path)), HOW) for two in files]

    def measure(i: int, row: np.ndarray) -> None:
        photo, target = (np.asarray(centre_square(each, SIDE)) for each in pairs[i].read())
        registration = register(photo, target)
        if registration.shifted:
            row["down"], row["right"] = registration.down / SIDE, registration.right / SIDE

    file = cache_file("shifts", str(real_path(root)))
    rows = measured_rows(file, _ROW, ids, measure, ("pair", "aligning"))
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
    return [_cut(first, top, left, side, size), _cut(second, top + down, left + right, side, size)]


def _cut(image: Image.Image, top: float, left: float, side: float, size: int) -> Image.Image:
    """A square of the centre square, in sides of it."""
    whole = min(image.size)
    x, y = (image.width - whole) / 2 + left * whole, (image.height - whole) / 2 + top * whole
    box = (max(0.0, x), max(0.0, y), x + side * whole, y + side * whole)
    box = (*box[:2], min(image.width, box[2]), min(image.height, box[3]))  # of rounding
    return image.resize((size, size), Image.Resampling.LANCZOS, box=box)


SIDE = 256  # pixels of the squares that are compared
FARTHEST = 12  # pixels; what seems to lie further off is taken for another picture
FINE, WIDE = 1.0, 1.5  # pixels of blur: of the gradient; of its directions, where they are compared
FLAT = 1e-6  # length of a gradient below which there is none
LEAST = 1.5  # pixels; what is less may be the width of a line
TILES = 8  # a side, which vote on whether the target is shifted
FITS, SHIFTED = 3.5, 5.0  # Student's t of their votes: the best of 625 shifts is no chance
CLEARLY = 0.25  # share of the agreement that is lost without the shift
_INNER = SIDE - 2 * FARTHEST

Pixels = NDArray[np.uint8]
Directions = NDArray[np.complex64]  # (SIDE, SIDE)
Correlations = NDArray[np.float64]  # by pixels down and right, from -FARTHEST to FARTHEST


@dataclass(frozen=True)
class Registration:
    """How far the target lies below (`down`) and to the right of its photo, in pixels at SIDE.

    `agreement` is the correlation of their directions there, above that by chance, as Cohen's κ: 1
    for the same, 0 where they fit there no better than at other shifts. They may fit hardly, but
    significantly (`fits`), and as they are, LEAST pixels off or more, significantly worse
    (`shifted`). Of a flat picture, and of one that fits best further off, all are 0 and false.
    """

    down: float
    right: float
    agreement: float
    fits: bool
    shifted: bool


def register(photo: Pixels, target: Pixels) -> Registration:
    """Measure a pair of squares, uint8 (SIDE, SIDE, 3)."""
    from scipy import ndimage  # heavy

    first, second = _directions(photo), _directions(target)
    # Both sides of a line, and what is between, become one.
    a, b = (ndimage.gaussian_filter(each, WIDE) for each in (first, second))
    correlations = _correlations(a, b)
    down, right = _highest(correlations)
    if max(abs(down), abs(right)) == FARTHEST:
        return Registration(0.0, 0.0, 0.0, False, False)
    row, column = down + FARTHEST, right + FARTHEST
    off = (
        down + _vertex(correlations[row - 1 : row + 2, column]),
        right + _vertex(correlations[row, column - 1 : column + 2]),
    )
    chance = float(correlations.mean())
    elsewhere = _at(ndimage.uniform_filter(b, 2 * FARTHEST + 1), 0, 0)
    return Registration(
        *off,
        (float(correlations.max()) - chance) / (1 - chance),
        _t(_in_tiles(a, _at(b, down, right) - elsewhere)) > FITS,
        bool(np.hypot(*off) >= LEAST) and _is_shifted(first, second),
    )


def _directions(picture: Pixels) -> Directions:
    """The gradient of the luma with twice its angle and the root of its length.

    So an edge and a line are the same where dark and light change places, and strong ones do not
    outvote the others.
    """
    from scipy import ndimage

    grey = picture @ (np.array(REC_601) / 255)
    down, right = (
        ndimage.gaussian_filter(grey, FINE, order=order, mode="nearest")
        for order in ((1, 0), (0, 1))
    )
    gradient = right + 1j * down
    length = np.abs(gradient) + FLAT
    return ((gradient / length) ** 2 * np.sqrt(length)).astype(np.complex64)


def _correlations(first: Directions, second: Directions) -> Correlations:
    """Of the inner square of the first with the second's at each shift, in [-1, 1]."""
    from scipy import fft

    inner, shifts = _at(first, 0, 0), 2 * FARTHEST + 1
    template = np.zeros_like(first)
    template[:_INNER, :_INNER] = inner
    products = fft.ifft2(fft.fft2(second) * fft.fft2(template).conj()).real[:shifts, :shifts]
    sums = np.pad(np.abs(second).astype(np.float64) ** 2, ((1, 0), (1, 0))).cumsum(0).cumsum(1)
    rows = sums[_INNER:][:shifts] - sums[:shifts]
    energy = rows[:, _INNER:][:, :shifts] - rows[:, :shifts]
    norm = np.sqrt((np.abs(inner) ** 2).sum() * energy)
    return products / np.maximum(norm, FLAT)


def _at(directions: Directions, down: int, right: int) -> Directions:
    """The inner square, moved."""
    top, left = FARTHEST + down, FARTHEST + right
    return directions[top : top + _INNER, left : left + _INNER]


def _highest(correlations: Correlations) -> tuple[int, int]:
    row, column = np.unravel_index(correlations.argmax(), correlations.shape)
    return int(row) - FARTHEST, int(column) - FARTHEST


def _vertex(values: NDArray[np.float64]) -> float:
    """Where the parabola through three values at -1, 0 and 1 is highest."""
    before, at, after = values
    bend = before - 2 * at + after
    return float((before - after) / (2 * bend)) if bend < 0 else 0.0


def _is_shifted(first: Directions, second: Directions) -> bool:
    """Whether the target fits significantly worse as it is than where it fits best.

    A style widens lines, or draws them beside their edges. Then it fits as well on the other side,
    or one side of its lines still does where it is. So the best place is tested against both, by
    the differences in tiles (Student's t).
    """
    correlations = _correlations(first, second)
    down, right = _highest(correlations)
    best, chance = correlations.max(), correlations.mean()
    if best - correlations[FARTHEST, FARTHEST] < CLEARLY * (best - chance):
        return False
    votes = _in_tiles(first, _at(second, down, right))
    others = (_in_tiles(first, _at(second, *place)) for place in ((0, 0), (-down, -right)))
    return all(_t(votes - other) > SHIFTED for other in others)


def _in_tiles(first: Directions, second: Directions) -> NDArray[np.float32]:
    """The sum of products in each tile of the inner square."""
    products = (_at(first, 0, 0) * second.conj()).real
    side = _INNER // TILES
    return products.reshape(TILES, side, TILES, side).sum((1, 3)).ravel()


def _t(values: NDArray[np.float32]) -> float:
    """Student's t of their mean."""
    return float(values.mean() / (values.std(ddof=1) / np.sqrt(len(values)) + FLAT))
