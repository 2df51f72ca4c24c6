"""loss.region: how much each pixel of a photo counts, by the parts of its faces, and by masks.

Faces are found once, before the first step, and kept with the set: each as four marks, in sides of
the centre square and from its middle. A part is drawn where the marks put it: sizes below are in
distances between the eyes, by eye on portraits. Brows are drawn as a network of landmarks has them.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from distill.config.settings.training import Loss
from distill.core.errors import DistillError
from distill.core.files import home_path
from distill.data.faces import BROWS, MARKS, brow_finder, frame, point_finder
from distill.data.pairs import ReadablePair
from distill.data.photos import SUFFIXES, read_photo, stem_of
from distill.data.thumbnails import id_of_files, measured_rows

FILE, WITH_BROWS = "faces.npy", "brows.npy"  # in the folder of the set
MOST = 4  # faces of a photo, the largest
ONE = 16  # level of a weight of 1: weights are kept in 8 bits
PARTS: dict[str, list[tuple[complex, float, float]]] = {  # middles and half axes, eyes' middle 0
    "eyes": [(-0.5 + 0j, 0.32, 0.22), (0.5 + 0j, 0.32, 0.22)],
    "nose": [(0.42j, 0.26, 0.36)],
    "mouth": [(1.06j, 0.44, 0.26)],
    "face": [(0.52j, 1.1, 1.5)],
    "outline": [(0.52j, 1.1, 1.5)],  # its rim
    "brows": [],  # by their own points
}
RIM = 0.25  # width of the outline
BROW = 0.08  # what is added around a brow
_CIRCLE = np.exp(2j * np.pi * np.arange(32) / 32)


class Regions:
    """The weights of the photos of these pairs; `loss` says of which parts, `root` is their set.

    Raises DistillError for masks that are not there.
    """

    def __init__(self, loss: Loss, pairs: Sequence[ReadablePair], root: Path) -> None:
        self._weights = sorted(loss.weighed.items(), key=lambda item: item[1])  # the highest on top
        wanted = loss.weighed.keys() & PARTS.keys()
        self._faces = _faces(pairs, root, "brows" in wanted) if wanted else None
        self._masks: list[Path] | None = None
        if "mask" in loss.weighed:
            if loss.masks is None:
                raise DistillError("loss.region.mask: of which masks? loss.masks=FILE or DIR")
            there, stems = home_path(loss.masks), [stem_of(pair.name) for pair in pairs]
            files = (f for f in there.glob("*") if f.suffix.lower() in SUFFIXES)
            by_stem = {stem_of(file.name): file for file in files}
            masks = dict.fromkeys(stems, there) if there.is_file() else by_stem
            if lacking := next((stem for stem in stems if stem not in masks), None):
                raise DistillError(f"loss.masks={loss.masks}: no {lacking}.png, named as its pair")
            self._masks = [masks[stem] for stem in stems]

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
                right, left, _, mouth, *brows = middle + face * min(width, height)
                between, unit = frame(right, left, mouth)
                for brow in np.reshape(brows, np.shape(BROWS)) if part == "brows" else ():
                    spots = [(z.real, z.imag) for z in brow]
                    pen.polygon(spots, level, level, max(1, round(2 * BROW * abs(unit))))
                for at, across, down in PARTS[part]:
                    ring = at + across * _CIRCLE.real + 1j * down * _CIRCLE.imag
                    spots = [(z.real, z.imag) for z in between + unit * ring]
                    if part == "outline":
                        rim = max(1, round(RIM * abs(unit)))
                        pen.line([*spots, *spots[:2]], level, rim, joint="curve")
                    else:
                        pen.polygon(spots, level)
        return torch.from_numpy(np.array(area))


def _faces(pairs: Sequence[ReadablePair], root: Path, brows: bool) -> np.ndarray:
    """(n, MOST, 4 or 24) of the marks, brows too, of each photo's faces, x + iy; NaN for no face.

    What is known from before is taken from the set's file, or the file is made.
    """
    kind = np.dtype([("id", "V16"), ("faces", "c8", (MOST, 4 + brows * np.size(BROWS)))])
    find_brows = brow_finder() if brows else None
    find = cache(point_finder)
    # By path below the set: a set that is moved or copied keeps its faces.
    files = [Path(pair.photo) for pair in pairs]
    ids = [id_of_files([], f"{f.relative_to(root)}\0{f.stat().st_size}") for f in files]

    def measure(i: int, row: np.ndarray) -> None:
        row["faces"] = np.nan
        photo = pairs[i].read()[0]
        middle, side = complex(*photo.size) / 2, min(photo.size)
        pixels = np.asarray(photo)
        for number, face in enumerate(find()(pixels)[:MOST]):
            spots = [face.marks[m] for m in MARKS[:4]]
            spots += [*find_brows(pixels, face).flat] if find_brows else []
            row["faces"][number, : len(spots)] = (np.array(spots) - middle) / side

    file = root / (WITH_BROWS if brows else FILE)
    return measured_rows(file, kind, ids, measure, ("photo", "finding faces"))["faces"]
