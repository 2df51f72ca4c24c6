"""How well distill.curate and data.align tell pairs that fit from pairs that do not.

    python benchmarks/curation.py --photos DIR --count 12

Each photo is drawn by the classical teachers and by filters that move nothing, some of whose lines
are wide or lie on one side of their edges. These pairs are exact. The same drawings moved by whole
pixels, bent by some 2.5 pixels that are 0 in the mean, and those of another photo are what is to
be told from them, by the registration and the limits of distill.curate.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np
import torch
from common import Table, machine, parser, write
from numpy.typing import NDArray
from PIL import Image, ImageFilter, ImageOps
from scipy import ndimage
from skimage import feature

from distill.config import compose
from distill.core.images import to_image, to_tensor
from distill.data.photos import centre_square, demo_photos, find_photos, read_photo
from distill.data.shifts import SIDE, register
from distill.data.split import NO_EDGES
from distill_curate import pair_scores
from distill_curate.settings import Curate, CurationLimits
from distill_curate.verdicts import verdicts
from distill_drawings.comic import ComicDrawing
from distill_drawings.ink import InkDrawing
from distill_drawings.neon import NeonSign
from distill_drawings.oil import OilPainting
from distill_drawings.pencil import PencilDrawing
from distill_drawings.poster import PosterPrint
from distill_drawings.toon import Toon
from distill_drawings.watercolour import Watercolour

RIM = 16  # pixels around SIDE, so that a moved drawing shows what is there
MOVED = (1, 2, 3, 4, 6, 8)  # pixels
BENT = 2.5  # pixels, root mean square

Pixels = NDArray[np.uint8]


def filters() -> dict[str, Callable[[Image.Image], Image.Image]]:
    """By name; `side …`: those whose lines lie on one side of the edges."""
    of_pillow = {
        "contour": ImageFilter.CONTOUR,
        "find edges": ImageFilter.FIND_EDGES,
        "blur": ImageFilter.GaussianBlur(3),
        "median": ImageFilter.MedianFilter(7),
        "minimum": ImageFilter.MinFilter(5),
        "maximum": ImageFilter.MaxFilter(5),
    }
    styles = {n: lambda photo, f=f: photo.filter(f) for n, f in of_pillow.items()}
    styles |= {f"lines {w}": lambda photo, w=w: lines(photo, w) for w in (1, 3, 5, 7)}
    styles |= {
        f"side {origin}": lambda photo, origin=origin: lines(photo, 5, origin)
        for origin in ((-2, -2), (-2, 0), (0, 2), (1, 1))
    }
    return styles | {
        "posterised": lambda photo: ImageOps.posterize(photo, 2),
        "negative": ImageOps.invert,
        "side emboss": lambda photo: photo.convert("L").filter(ImageFilter.EMBOSS),
    }


def lines(photo: Image.Image, width: int, origin: tuple[int, int] = (0, 0)) -> Image.Image:
    """Black ones along Canny's edges, around them or to one side."""
    edges = feature.canny(np.asarray(photo.convert("L")) / 255, 2)
    return Image.fromarray(~ndimage.maximum_filter(edges, width, origin=origin))


def teachers() -> dict[str, torch.nn.Module]:
    return {
        "toon": Toon(), "ink": InkDrawing(), "oil": OilPainting(), "watercolour": Watercolour(),
        "pencil": PencilDrawing(), "crayons": PencilDrawing(coloured=True), "comic": ComicDrawing(),
        "poster": PosterPrint(), "neon": NeonSign(),
    }  # fmt: skip


def drawings(photo: Image.Image) -> dict[str, Pixels]:
    images = {name: draw(photo).convert("RGB") for name, draw in filters().items()}
    with torch.inference_mode():
        for name, teacher in teachers().items():
            images[f"teacher {name}"] = to_image(teacher(to_tensor(photo)[None])[0, :3])
    return {name: np.asarray(each) for name, each in images.items()}


def inner(picture: Pixels, down: int = 0, right: int = 0) -> Pixels:
    return picture[RIM - down :, RIM - right :][:SIDE, :SIDE]


def bent(picture: Pixels, rng: np.random.Generator) -> Pixels:
    fields = [ndimage.gaussian_filter(rng.normal(size=picture.shape[:2]), 24) for _ in range(2)]
    off = [(each - each.mean()) * BENT / each.std() / 2**0.5 for each in fields]
    at = [place + each for place, each in zip(np.indices(picture.shape[:2]), off, strict=True)]
    channels = [ndimage.map_coordinates(picture[..., c], at, order=1) for c in range(3)]
    return np.stack(channels, -1)


def pairs(
    photo: Pixels, exact: dict[str, Pixels], others: dict[str, Pixels], rng: np.random.Generator
) -> Iterator[tuple[str, tuple[int, int], Pixels, Pixels]]:
    """Their kind, how far the drawing lies off, photo and drawing."""
    square = inner(photo)
    for name, drawing in exact.items():
        kind = {"teacher": "teachers", "side": "lines to one side"}.get(name.split()[0], "filters")
        yield f"exact, {kind}", (0, 0), square, inner(drawing)
        for size in MOVED:
            angle = rng.uniform(0, 2 * np.pi)
            off = round(size * np.sin(angle)), round(size * np.cos(angle))
            yield f"moved by {size}", off, square, inner(drawing, *off)
        yield "bent", (0, 0), square, inner(bent(drawing, rng))
        yield "of another photo", (0, 0), square, inner(others[name])


def judged(
    photo: Pixels, drawing: Pixels, limits: CurationLimits
) -> tuple[str, bool, tuple[float, float]]:
    """What distill.curate says, whether data.align moves it, and how far it is said to lie off."""
    row = np.zeros(1, pair_scores.SCORES)
    registration = register(photo, drawing)
    row["readable"], row["difference"] = True, 255
    row["landmarks"] = row["change"] = np.nan
    for name in ("down", "right", "agreement", "fits", "shifted"):
        row[name] = getattr(registration, name)
    (verdict,) = verdicts(row, NO_EDGES, limits, align=False)
    kept = "uncertain" if verdict.uncertain else "kept"
    word = verdict.reasons[0].split()[0] if verdict.reasons else kept
    return word, registration.shifted, (registration.down, registration.right)


def main() -> None:
    arguments = parser(__doc__, rounds=1)
    arguments.add_argument("--count", type=int, default=12, help="photos (%(default)s)")
    options = arguments.parse_args()
    rng = np.random.default_rng(0)
    files = [*(find_photos(options.photos, "--photos=") if options.photos else demo_photos())]
    squares = [
        centre_square(read_photo(each.path), SIDE + 2 * RIM) for each in files[: options.count]
    ]
    exact = [drawings(each) for each in squares]
    results, limits = defaultdict(list), compose.load("curate", [], Curate).limits
    for i, square in enumerate(squares):
        for kind, off, photo, drawing in pairs(np.asarray(square), exact[i], exact[i - 1], rng):
            word, aligned, place = judged(photo, drawing, limits)
            results[kind].append((word, aligned, float(np.hypot(*np.subtract(place, off)))))
    rows = []
    for kind, several in results.items():
        words, moves, errors = map(np.array, zip(*several, strict=True))
        shares = [f"{(words == each).mean():.1%}" for each in ("lies", "another", "uncertain")]
        error = f"{np.median(errors[moves]):.2f}" if kind.startswith("moved") else "–"
        rows.append([kind, str(len(several)), *shares, f"{moves.mean():.1%}", error])
    columns = ["pairs", "", "left out: off", "another", "uncertain", "align moves", "error, px"]
    figures = {
        kind: [list(map(str, each)) for each in several] for kind, several in results.items()
    }
    table = Table(f"Curation, {len(squares)} photos", columns, rows)
    write("curation", options.out, machine() | {"photos": len(squares)}, figures, table)


if __name__ == "__main__":
    main()
