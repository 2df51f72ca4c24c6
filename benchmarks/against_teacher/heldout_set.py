"""A held-out side of a set of pairs: photo, teacher's output, folder and person of each.

distill.prepare has put a person and near-duplicates on one side; `who` says whose a picture is.
"""

from __future__ import annotations

from ast import literal_eval
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from distill.core.errors import DistillError
from distill.core.images import to_pixels
from distill.core.progress import bar
from distill.data.manifest import manifest_at
from distill.data.pairs import Pair, ReadablePair
from distill.data.photo_table import pair_of, pairs_on_disk, png_names, read_rows, size_of
from distill.data.photos import BadPhoto, Side, group_of, read_photo
from distill.eval_fid.heldout import half_order
from distill.eval_fid.whole_pictures import by_size, square_name

ALL = "all"
Who = tuple[str, str]  # folder of photos and, within it, what pictures of one person share
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class FidelitySet:
    """`photo` and `teacher` are uint8 (n, 3, size, size), persons shuffled, in one order.

    `wholes` are the whole pictures of the same photos by their long side, still to be read.
    """

    root: Path
    files: list[str]
    who: list[Who]
    photo: Tensor
    teacher: Tensor
    side: Side = "test"
    wholes: Mapping[int, Sequence[ReadablePair]] = field(default_factory=dict)

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

    def folders(self) -> list[Indices]:
        """The pictures of each folder."""
        subsets = self.subsets()
        return [at for name, at in subsets.items() if name != ALL] or [subsets[ALL]]

    def some(self, count: int) -> list[int]:
        """The first pictures, of the folders in turn."""
        pools = [at.tolist() for at in self.folders()]
        turns = [(place, pool) for pool in pools for place in range(len(pool))]
        ordered = sorted(turns, key=lambda turn: turn[0])[:count]
        return sorted((pool[place] for place, pool in ordered), key=lambda i: (self.who[i][0], i))


def read(root: Path, limit: int | None, side: Side | None = None) -> FidelitySet:
    """The held-out pairs of a set of distill.prepare, of each folder at most `limit`.

    Those of the `side` asked for, otherwise for testing, or of validation where there are none.
    Raises DistillError for what is no such set, or has no such side.
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
    names = {*files}
    wholes = [
        Pair(root / side / "photo" / file, root / side / "stylized" / file)
        for file in sorted(both)
        if size_of(file) is not None and square_name(file) in names
    ]
    return FidelitySet(root, files, who, photo, teacher, side, by_size(wholes))


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
