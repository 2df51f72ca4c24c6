"""loss.region: how much each pixel of a photo counts, by the parts of its faces, and by masks.

Faces are found once, before the first step, and kept with the set: each as four marks, in sides of
the centre square and from its middle. A part is drawn where the marks put it: sizes below are in
distances between the eyes, by eye on portraits. Brows would need a network of landmarks.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from distill.config.settings.training import Loss
from distill.core.errors import DistillError
from distill.core.files import home_path
from distill.core.progress import bar
from distill.data.faces import MARKS, point_finder
from distill.data.pairs import ReadablePair
from distill.data.photos import SUFFIXES, BadPhoto, read_photo, stem_of
from distill.data.thumbnails import id_of_files, load_rows, save_rows

FILE = "faces.npy"  # in the folder of the set
MOST = 4  # faces of a photo, the largest
ONE = 16  # level of a weight of 1: weights are kept in 8 bits
PARTS: dict[str, list[tuple[complex, float, float]]] = {  # middles and half axes, eyes' middle 0
    "eyes": [(-0.5 + 0j, 0.32, 0.22), (0.5 + 0j, 0.32, 0.22)],
    "nose": [(0.42j, 0.26, 0.36)],
    "mouth": [(1.06j, 0.44, 0.26)],
    "face": [(0.52j, 1.1, 1.5)],
    "outline": [(0.52j, 1.1, 1.5)],  # its rim
}
RIM = 0.25  # width of the outline
_ROW = np.dtype([("id", "V16"), ("faces", "c8", (MOST, 4))])
_CIRCLE = np.exp(2j * np.pi * np.arange(32) / 32)


class Regions:
    """The weights of the photos of these pairs; `loss` says of which parts, `root` is their set.

    Raises DistillError for masks that are not there.
    """

    def __init__(self, loss: Loss, pairs: Sequence[ReadablePair], root: Path) -> None:
        self._weights = sorted(loss.weighed.items(), key=lambda item: item[1])  # the highest on top
        self._faces = _faces(pairs, root) if loss.weighed.keys() & PARTS.keys() else None
        self._masks: list[Path] | None = None
        if "mask" in loss.weighed:
            if loss.masks is None:
                raise DistillError("loss.region.mask: of which masks? loss.masks=FILE or DIR")
            there = home_path(loss.masks)
            files = [there] if there.is_file() else [*there.glob("*")] if there.is_dir() else []
            by_stem = {stem_of(f.name): f for f in files if f.suffix.lower() in SUFFIXES}
            stems = [stem_of(pair.name) for pair in pairs]
            one = there.is_file()
            if lacking := next((s for s in stems if not one and s not in by_stem), None):
                raise DistillError(f"loss.masks={loss.masks}: has no mask for {lacking}")
            self._masks = [there if one else by_stem[stem] for stem in stems]

    def levels(self, index: int, height: int, width: int) -> Tensor:
        """uint8 (height, width): sixteenths of the weight of each pixel of photo `index`."""
        area = Image.new("L", (width, height), ONE)
        pen, middle = ImageDraw.Draw(area), complex(width, height) / 2
        for part, weight in self._weights:
            level = round(ONE * weight)
            if part == "mask" and self._masks is not None:
                mask = read_photo(self._masks[index], least=1).convert("L").resize(area.size)
                area.paste(level, mask=mask.point(lambda value: 255 if value > 127 else 0))
                continue
            for face in self._faces[index] if self._faces is not None else ():
                if np.isnan(face[0]):
                    break
                right, left, _, mouth = middle + face * min(width, height)
                between = (right + left) / 2
                # As for stickers: in profile the eyes' line is short, the mouth's distance is not.
                unit = left - right - 1j * (mouth - between)
                unit *= max(abs(left - right), abs(mouth - between) / 1.06) / (abs(unit) or 1)
                for at, across, down in PARTS[part]:
                    ring = at + across * _CIRCLE.real + 1j * down * _CIRCLE.imag
                    spots = [(z.real, z.imag) for z in between + unit * ring]
                    if part == "outline":
                        rim = max(1, round(RIM * abs(unit)))
                        pen.line([*spots, *spots[:2]], level, rim, joint="curve")
                    else:
                        pen.polygon(spots, level)
        return torch.from_numpy(np.array(area))


def _faces(pairs: Sequence[ReadablePair], root: Path) -> np.ndarray:
    """(n, MOST, 4) of the marks of each photo's faces, x + iy; NaN where there are fewer.

    What is known from before is taken from the set's file, or the file is made.
    """
    kept, rows = root / FILE, np.zeros(len(pairs), _ROW)
    known, find = load_rows(kept, _ROW), None
    files = [pair.photo for pair in pairs]
    # By path below the set: a set that is moved or copied keeps its faces.
    ids = [id_of_files([], f"{Path(f).relative_to(root)}\0{Path(f).stat().st_size}") for f in files]
    missing = [i for i, each in enumerate(ids) if each not in known]
    with bar(len(missing), "photo", "finding faces", leave=False) as progress:
        for i in missing:
            find = find or point_finder()
            row: Any = np.zeros((), _ROW)
            row["id"], row["faces"] = ids[i], np.nan
            with suppress(BadPhoto):  # training names it
                photo = pairs[i].read()[0]
                middle, side = complex(*photo.size) / 2, min(photo.size)
                for number, face in enumerate(find(np.asarray(photo))[:MOST]):
                    row["faces"][number] = [(face.marks[m] - middle) / side for m in MARKS[:4]]
            known[ids[i]] = row
            progress.update()
    if missing:
        with suppress(OSError):  # a set that may not be written to
            save_rows(kept, np.array([*known.values()], _ROW))
    for i, each in enumerate(ids):
        rows[i] = known[each]
    return rows["faces"]
