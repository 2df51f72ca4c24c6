"""Two domains of drawings and photos: A is drawn from Quick, Draw!'s strokes, B links to photos.

A line of its simplified files is {"word", "key_id", "recognized", "drawing": [[[x…], [y…]], …]},
whole numbers from 0 to 255, a list of both for each stroke (Google, CC BY 4.0).
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from distill.core.arrays import save_png
from distill.core.errors import DistillError, counted, library_errors, reason_of
from distill.core.files import home_path, write_json
from distill.core.progress import bar
from distill.data import photo_folders
from distill_sets.attributes import link, new_set
from distill_sets.settings import PrepareWithSets, QuickDraw

RIM = 0.06  # of the square on each side of the longer side of a drawing
FINER = 4  # times as large is drawn, then reduced
Strokes = Sequence[np.ndarray]  # (2, points) each, x and y


def carry_out(settings: PrepareWithSets) -> Path:
    """Draw the files' drawings into A, link the photos into B; gives the set's folder.

    Raises DistillError for files of another form, and where no drawing is left.
    """
    options = settings.quickdraw
    if settings.attributes:
        raise DistillError("attributes=, quickdraw.files=: two domains come from either; leave one")
    if photo_folders.at_addresses(settings):
        raise DistillError(f"photos={settings.photos}: copy them here; B links to their files")
    names = options.files if isinstance(options.files, list) else [options.files or ""]
    files, photos = [home_path(each) for each in names], photo_folders.photos(settings)
    drawings = "+".join(file.stem for file in files)
    name = f"{drawings}-{photo_folders.set_name(settings)}-{options.size}"
    with new_set(settings, name) as (folder, root):
        lines = _draw(files, options, folder / "A")
        count = lines["drawn"]
        left_out = f"{lines['unknown']} not recognised, {counted(lines['damaged'], 'line')} damaged"
        if not count:
            raise DistillError(f"quickdraw.files={options.files}: no drawing is left; {left_out}")
        if count < 2 or len(photos) < 2:
            raise DistillError(
                f"{counted(count, 'drawing')}, {counted(len(photos), 'photo')}: training holds out "
                "one of each, so it needs two; add more"
            )
        for photo in photos:
            link(photo, folder / "B")
        how = {"size": options.size, "width": options.width, "jitter": options.jitter}
        write_json(folder / "quickdraw.json", how | {"files": [str(f) for f in files]})
    print(f"A: {counted(count, 'drawing')}, B: {counted(len(photos), 'photo')}, in {root}")
    if lines["unknown"] or lines["damaged"]:
        print(f"left out: {left_out}")
    return root


def _draw(files: Sequence[Path], options: QuickDraw, folder: Path) -> Counter[str]:
    """Draw those that the options choose; gives how many lines were drawn, unknown or damaged."""
    lines = Counter[str]()
    with bar(None, "drawing", "drawing") as progress:
        for file in files:
            most = None if options.most is None else lines["drawn"] + options.most
            for drawing in _drawings(file):
                if drawing is None:
                    lines["damaged"] += 1
                elif options.recognised and not drawing.recognised:
                    lines["unknown"] += 1
                elif lines["drawn"] == most:
                    break
                else:
                    seed = int(drawing.key) if drawing.key.isdigit() else 0
                    picture = drawn(drawing.strokes, options, seed)
                    save_png(picture, folder / f"{file.stem}-{drawing.key}.png")
                    lines["drawn"] += 1
                    progress.update()
    return lines


class Drawing(NamedTuple):
    """A drawing of a file, and whether the game recognised it."""

    key: str
    strokes: Strokes
    recognised: bool


def _parsed(line: str) -> Drawing:
    """Raises ValueError, KeyError or TypeError for a line of another form."""
    row = json.loads(line)
    strokes = [np.array(stroke[:2], float) for stroke in row["drawing"]]
    key, recognised = str(row["key_id"]), bool(row["recognized"])
    fits = all(s.ndim == 2 and s.size and np.isfinite(s).all() for s in strokes)
    if not (strokes and fits and key.isalnum()):
        raise ValueError("no strokes")
    return Drawing(key, strokes, recognised)


def _drawings(file: Path) -> Iterator[Drawing | None]:
    """The drawings of a file, None for a damaged line.

    Raises DistillError for a file whose first line is none of its form.
    """
    unreadable = library_errors(f"{file}: cannot be read", OSError, UnicodeDecodeError, most=None)
    with unreadable, file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            try:
                yield _parsed(line)
            except (ValueError, KeyError, TypeError) as error:
                if not number:
                    raise DistillError(
                        f"{file}: want Quick, Draw!'s simplified .ndjson ({reason_of(error)})"
                    ) from error
                yield None


def drawn(strokes: Strokes, how: QuickDraw, seed: int) -> Image.Image:
    """Black strokes on white, in the middle of a square; round ends and corners.

    `jitter` moves every point by chance, and the chance by `seed`: the same drawing, the same
    picture.
    """
    both = np.concatenate(strokes, 1)
    low, high = both.min(1), both.max(1)
    scale = FINER * how.size * (1 - 2 * RIM) / max(float((high - low).max()), 1.0)
    page = Image.new("L", (FINER * how.size,) * 2, 255)
    pen, width = ImageDraw.Draw(page), FINER * how.width
    rng = np.random.default_rng(seed)
    for stroke in strokes:
        spots = (stroke - (low + high)[:, None] / 2) * scale + FINER * how.size / 2
        spots = (spots + rng.normal(0, FINER * how.jitter, spots.shape)).T
        pen.line([(x, y) for x, y in spots], 0, round(width), joint="curve")
        for x, y in (spots[0], spots[-1]):
            pen.circle((x, y), width / 2, 0)
    return page.reduce(FINER).convert("RGB")
