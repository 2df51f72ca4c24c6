"""photos.tsv of a set: the split of each photo, and which photos are left out.

ROOT/photos.tsv    pair, side (- for none), folder, twin (1 for a near-duplicate), photo, reason;
                   written before the first pair, so that a killed run resumes with the same plan
ROOT/dropped.txt   the pictures that drop=FILE named
ROOT/skipped.tsv   photos that could not be used, with the reason
"""

from __future__ import annotations

import os
import re
from ast import literal_eval
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from distill.core.errors import DistillError
from distill.core.files import write_whole
from distill.data.photos import Photo, Side

PHOTOS, DROPPED, SKIPPED = "photos.tsv", "dropped.txt", "skipped.tsv"
RUN_PAIRS = "pairs.tsv"  # in a run's folder: the pairs that it began with
SIDES: tuple[Side, ...] = ("train", "val", "test")
_SIDE: dict[str, Side | None] = {"train": "train", "val": "val", "test": "test", "-": None}
# A size stands behind the digits that make a pair's name unique: canon-s95.png has none.
_VIEW = re.compile(r"(-v\d{3,}|(?<=-[0-9a-f]{8})-s\d{2,})?\.png$")
_SIZE = re.compile(r"(?<=-[0-9a-f]{8})-s(\d{2,})\.png$")
# The folders of a pair's two pictures, in the order in which they are written.
LAYER_FOLDER = "ink"  # beside them, of a teacher that says where its lines are
TEACHER_FOLDERS, SKETCH_FOLDERS = ("photo", "stylized"), ("B", "A")
PAIR_FOLDERS = (TEACHER_FOLDERS, SKETCH_FOLDERS)
# Text as `repr` writes it, of which `literal_eval` makes that text and nothing else.
_ESCAPE = r"""\\(?:[\\'"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U00(?:0[0-9a-f]|10)[0-9a-f]{4})"""
_QUOTED = re.compile(
    "|".join(rf"{q}(?:[^{q}\\\x00-\x1f\ud800-\udfff]|{_ESCAPE})*{q}" for q in "'\"")
)
HEAD = "pair\tside\tfolder\ttwin\tphoto\treason\n"


@dataclass(frozen=True, slots=True)
class PhotoRow:
    """One photo of a set, `key` as `repr` gives it; without a side `reason` says why."""

    pair: str
    side: Side | None
    folder: str
    near_duplicate: bool
    key: str
    reason: str = ""

    @classmethod
    def of(
        cls, photo: Photo, side: Side | None, near_duplicate: bool = False, reason: str = ""
    ) -> PhotoRow:
        return cls(photo.pair_name, side, photo.folder, near_duplicate, repr(photo.key), reason)

    @property
    def photo(self) -> str:
        """The photo's key itself."""
        return literal_eval(self.key)

    def __str__(self) -> str:
        side, near = self.side or "-", str(int(self.near_duplicate))
        return "\t".join((self.pair, side, repr(self.folder), near, self.key, self.reason)) + "\n"


def pair_of(file: str) -> str:
    """The pair name in a PNG's name: without the number of the view, or the size."""
    return _VIEW.sub("", file)


def size_of(file: str) -> int | None:
    """The long side of a whole picture in a PNG's name; None of a square."""
    match = _SIZE.search(file)
    return int(match[1]) if match else None


def read_rows(root: Path) -> dict[str, PhotoRow]:
    """The set's photos by pair name; empty where there is no photos.tsv.

    Raises DistillError for a damaged one.
    """
    rows = {}
    for number, line in enumerate(_lines(root / PHOTOS)[1:], start=2):
        cells = line.split("\t")
        if (
            len(cells) != 6
            or cells[1] not in _SIDE
            or not (_QUOTED.fullmatch(cells[2]) and _QUOTED.fullmatch(cells[4]))
        ):
            raise DistillError(
                f"{root / PHOTOS}: damaged in line {number}; delete it: photos that have a pair "
                "keep their sides"
            )
        pair, side, folder, near, key, reason = cells
        rows[pair] = PhotoRow(pair, _SIDE[side], literal_eval(folder), near == "1", key, reason)
    return rows


def write_rows(root: Path, rows: Iterable[PhotoRow]) -> None:
    write_whole(root / PHOTOS, "".join([HEAD, *map(str, rows)]))


def read_dropped(path: Path) -> list[str]:
    """The lines of a list of pictures to leave out, without empty ones."""
    return [line for line in _lines(path) if line.strip()]


def write_dropped(root: Path, lines: list[str]) -> None:
    """Keep the list; a set from which nothing was ever left out has none."""
    if lines or (root / DROPPED).is_file():
        write_whole(root / DROPPED, "".join(f"{line}\n" for line in lines))


def read_skipped(root: Path) -> dict[str, str]:
    """Photos that could not be used (`repr` of the key) and the reason."""
    rows = (line.partition("\t") for line in _lines(root / SKIPPED)[1:])
    return {name: reason for name, _, reason in rows}


def write_skipped(root: Path, skipped: dict[str, str]) -> None:
    lines = [f"{key!r}\t{reason}\n" for key, reason in sorted(skipped.items())]
    write_whole(root / SKIPPED, "".join(["photo\treason\n", *lines]))


def read_sides(path: Path) -> list[tuple[str, Side]]:
    """What `write_sides` wrote: pairs by name, with their side; what is damaged is left out."""
    rows = (line.partition("\t") for line in _lines(path))
    return [(name, side) for where, _, name in rows if (side := _SIDE.get(where)) and name]


def names_learnt(run: Path) -> set[str]:
    """The pairs that a run began with, by name."""
    return {name for name, _ in read_sides(run / RUN_PAIRS)}


def write_sides(path: Path, sides: Iterable[tuple[str, Side]]) -> None:
    """A line for each pair, but for names that no line can hold."""
    write_whole(path, "".join(f"{side}\t{name}\n" for name, side in sides if "\n" not in name))


def png_names(root: Path, side: Side, folder: str) -> set[str]:
    """The PNG files in ROOT/SIDE/FOLDER."""
    path = root / side / folder
    if not path.is_dir():
        return set()
    with os.scandir(path) as entries:
        return {e.name for e in entries if e.name.endswith(".png") and not e.name.startswith(".")}


def pairs_on_disk(root: Path) -> dict[Side, set[str]]:
    """The names of the whole pairs of each side."""
    return {
        side: set().union(
            *(png_names(root, side, a) & png_names(root, side, b) for a, b in PAIR_FOLDERS)
        )
        for side in SIDES
    }


def folders_of(root: Path, files: Sequence[str]) -> list[str]:
    """The folder each PNG's photo came from; empty where the set has one folder or does not say."""
    rows = read_rows(root)
    matches = (rows.get(pair_of(file)) for file in files)
    return [row.folder if row else "" for row in matches]


def leftovers(root: Path, pairs: set[str]) -> list[Path]:
    """The files of these pairs, the last written first: what is left of a pair is then no pair."""
    return [
        root / side / folder / name
        for folders in PAIR_FOLDERS
        for folder in reversed(folders)
        for side in SIDES
        for name in sorted(png_names(root, side, folder))
        if pair_of(name) in pairs
    ]


def _lines(path: Path) -> list[str]:
    """Lines end at a newline only: other names of line ends may be part of a photo's name."""
    if not path.is_file():
        return []
    text = path.read_bytes().decode("utf-8-sig", errors="surrogateescape")
    return [line.removesuffix("\r") for line in text.split("\n") if line]
