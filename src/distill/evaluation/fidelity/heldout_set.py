"""A held-out side of a set of pairs: photo, teacher's output, folder, person and face of each.

distill.prepare has put a person and near-duplicates on one side; `who` says whose a picture is.
"""

from __future__ import annotations

import hashlib
import json
from ast import literal_eval
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from distill.core.errors import DistillError
from distill.core.files import write_whole
from distill.core.images import to_pixels
from distill.core.progress import bar
from distill.data.faces import DETECTOR, Box, largest_face
from distill.data.labelled.manifest import manifest_at
from distill.data.labelled.register import pair_of, pairs_on_disk, png_names, read_rows, size_of
from distill.data.photos import BadPhoto, Side, group_of, read_photo
from distill.evaluation.heldout import half_order

ALL = "all"
Who = tuple[str, str]  # folder of photos and, within it, what pictures of one person share
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class FidelitySet:
    """`photo` and `teacher` are uint8 (n, 3, size, size), persons shuffled, in one order."""

    root: Path
    files: list[str]
    who: list[Who]
    photo: Tensor
    teacher: Tensor
    boxes: list[Box | None]
    side: Side = "test"

    @property
    def size(self) -> int:
        return self.photo.shape[-1]

    @property
    def style(self) -> str:
        """Of the teacher that labelled the set."""
        return (manifest_at(self.root) or {})["style"]

    @property
    def groups(self) -> NDArray[np.str_]:
        """(n,): the same for pictures of one person."""
        return np.array(["/".join(each) for each in self.who])

    def subsets(self) -> dict[str, Indices]:
        """The pictures of each folder, then of all together; of one folder all alone."""
        folders = np.array([folder for folder, _ in self.who])
        every = {name: np.flatnonzero(folders == name) for name in sorted(set(folders))}
        return (every if len(every) > 1 else {}) | {ALL: np.arange(len(folders))}

    def some(self, count: int, faces: bool = False) -> list[int]:
        """The first pictures, of the subsets in turn, with `faces` of those with a face."""
        pools = [
            [i for i in indices.tolist() if self.boxes[i] or not faces]
            for name, indices in self.subsets().items()
            if name != ALL or len(self.subsets()) == 1
        ]
        turns = [(place, pool) for pool in pools for place in range(len(pool))]
        ordered = sorted(turns, key=lambda turn: turn[0])[:count]
        return sorted((pool[place] for place, pool in ordered), key=lambda i: (self.who[i][0], i))


def read(root: Path, limit: int | None, boxes: Path, side: Side | None = None) -> FidelitySet:
    """The held-out pairs of a set of distill.prepare, of each folder at most `limit`.

    Those of the `side` asked for, otherwise for testing, or of validation where there are none.
    `boxes` keeps where faces are. Raises DistillError for what is no such set, or has no such side.
    """
    if manifest_at(root) is None:
        raise DistillError(f"{root}: no set of pairs made by distill.prepare (no dataset.json)")
    side = side or ("test" if pairs_on_disk(root)["test"] else "val")
    people = persons(root, side)
    both = png_names(root, side, "photo") & png_names(root, side, "stylized")
    known = [file for file in both if pair_of(file) in people and size_of(file) is None]
    ordered = sorted(known, key=lambda file: half_order(people[pair_of(file)][1], file))
    files = _first(ordered, people, limit)
    if not files:
        raise DistillError(f"{root}: no held-out pairs in {side}/")
    photo, teacher = (_read(root / side / kind, files) for kind in ("photo", "stylized"))
    who = [people[pair_of(file)] for file in files]
    return FidelitySet(root, files, who, photo, teacher, find_faces(photo, boxes), side)


def persons(root: Path, side: str) -> dict[str, Who]:
    """Folder and person of every photo on one side of a set, by the name of its pair.

    A set of one folder goes by that folder's name, so that sets of one and of several compare.
    """
    alone = Path((manifest_at(root) or {}).get("photos", "")).name
    rows = (row for row in read_rows(root).values() if row.side == side)
    return {row.pair: (row.folder or alone, group_of(literal_eval(row.key))) for row in rows}


def _first(files: Sequence[str], people: dict[str, Who], limit: int | None) -> list[str]:
    taken: Counter[str] = Counter()
    kept = []
    for file in files:
        folder = people[pair_of(file)][0]
        taken[folder] += 1
        if limit is None or taken[folder] <= limit:
            kept.append(file)
    return kept


def _read(folder: Path, files: Sequence[str]) -> Tensor:
    """uint8 (n, 3, H, W)."""
    pictures = []
    with bar(len(files), "picture", f"reading {folder.name}", leave=False) as progress:
        for file in files:
            try:
                pictures.append(to_pixels(read_photo(folder / file)).permute(2, 0, 1))
            except BadPhoto as reason:
                raise DistillError(f"{folder / file}: {reason}") from reason
            progress.update()
    return torch.stack(pictures)


def find_faces(photos: Tensor, kept: Path) -> list[Box | None]:
    """The largest face of each uint8 (n, 3, H, W), from the file `kept` where it was found before.

    The file goes by the pixels, so that it serves every set and every limit.
    """
    known = _known(kept)
    found: list[Box | None] = []
    with bar(len(photos), "photo", "faces", leave=False) as progress:
        for photo in photos:
            pixels = np.ascontiguousarray(photo.permute(1, 2, 0).numpy())
            key = hashlib.sha256(str(pixels.shape).encode() + pixels.tobytes()).hexdigest()[:16]
            if key not in known:
                known[key] = largest_face(pixels)
            box = known[key]
            found.append(Box(*box) if box else None)
            progress.update()
    write_whole(kept, json.dumps({"detector": DETECTOR, "boxes": known}) + "\n")
    return found


def _known(kept: Path) -> dict[str, Sequence[int] | None]:
    try:
        content = json.loads(kept.read_text())
        return content["boxes"] if content["detector"] == DETECTOR else {}
    except (OSError, ValueError, KeyError, TypeError):  # none yet, or damaged: found anew
        return {}
