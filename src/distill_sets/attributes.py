"""Two domains out of one set of photos by an attribute, as CelebA lists them (Liu et al. 2015)."""

import csv
import hashlib
import os
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath

import numpy as np

from distill.core.errors import DistillError, counted, library_errors, needed
from distill.core.files import home_path, scratch_folder, write_json
from distill.core.nodes import unknown_name
from distill.data import photo_folders
from distill.data.licence_terms import keep_terms
from distill.data.photos import Photo, Side, stem_of
from distill.data.split import NO_EDGES, Edges, split
from distill_sets.settings import PrepareWithSets

YES, NO = ("1", "true", "yes"), ("-1", "0", "false", "no")
SEEDS = 50  # of the split, tried for one that leaves no folder empty
FOLDERS: dict[Side, str] = {"train": "train", "val": "test"}  # before A and B, by side


@dataclass(frozen=True)
class Table:
    """Rows of texts by the stem of a picture's file name."""

    path: Path
    columns: list[str]
    rows: Mapping[str, Sequence[str]]

    def value(self, photo: Photo, column: str) -> str:
        return self.rows[stem_of(photo.key)][self.columns.index(column)].strip()

    def has(self, photo: Photo, attribute: str) -> bool:
        """Raises DistillError for a value that is neither yes nor no."""
        value = self.value(photo, attribute)
        if value.lower() not in YES + NO:
            raise DistillError(
                f"{self.path}: {photo.key}: {attribute} is {value!r}; want 1 or -1, 1 or 0"
            )
        return value.lower() in YES


def read_table(path: Path, header: Sequence[str] = ()) -> Table:
    """A list with a row for each picture, whose name comes first.

    CelebA's own form, which is a line with the count and one with the columns' names before the
    rows; of a list without names they are the `header`. Or CSV, or Parquet, with names. Raises
    DistillError in one line.
    """
    # No file, bytes that are no text, pyarrow's own classes.
    with library_errors(f"{path}: not a list of attributes", most=None):
        if path.suffix.lower() == ".parquet":
            names, *rows = _parquet_rows(path)
        else:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
            csv_like = path.suffix.lower() == ".csv"
            names, *rows = csv.reader(lines) if csv_like else _celeba_rows(lines, header)
        if odd := next((row for row in rows if len(row) != len(names)), None):
            raise ValueError(f"{odd[:1]}: {len(odd)} values for {len(names)} columns")
    return Table(path, names[1:], {stem_of(PurePosixPath(row[0]).name): row[1:] for row in rows})


def _parquet_rows(path: Path) -> list[list[str]]:
    """The columns' names, then the rows."""
    with needed(f"{path}: Parquet needs pyarrow, pip install 'distill[shards]'"):
        from pyarrow import parquet
    columns = parquet.read_table(path).to_pydict()
    return [[*columns], *([*map(str, row)] for row in zip(*columns.values(), strict=True))]


def _celeba_rows(lines: Sequence[str], header: Sequence[str]) -> list[list[str]]:
    rows = [line.split() for line in lines if line.strip()]
    if len(rows[0]) == 1 and not header:
        count = int(rows.pop(0)[0])
        if count != len(rows) - 1:
            raise ValueError(f"it says {count} rows and has {len(rows) - 1}")
    if header or len(rows[0]) == len(rows[1]) - 1:  # CelebA does not name the first
        rows.insert(0, ["picture", *(header or rows.pop(0))])
    return rows


def carry_out(settings: PrepareWithSets) -> Path:
    """Link the photos with an attribute into A, those without into B; gives the set's folder.

    It holds trainA, trainB, testA and testB, in which nobody is on two sides; files stay as they
    are. With `balance` A and B have as many pictures of every combination of those attributes.
    Raises DistillError for lists that do not fit, and where nothing would be left.
    """
    by = settings.split
    if settings.attributes is None or by is None:
        raise DistillError(
            "recipe=cyclegan: takes pictures as they are; attributes=FILE split=NAME makes A and B "
            "out of photos=DIR, quickdraw.files=FILE.ndjson drawings and photos"
        )
    if photo_folders.at_addresses(settings):
        raise DistillError(f"photos={settings.photos}: copy them here; A and B link to their files")
    for key, file in photo_folders.drop_lists(settings).items():
        if file:
            raise DistillError(f"{key}={file}: of recipe=cyclegan take it out of photos=DIR itself")
    table = read_table(home_path(settings.attributes))
    for name in (by, *settings.balance):
        if name not in table.columns:
            raise DistillError(f"{table.path}: " + unknown_name(name, table.columns, "attribute"))
    photos = photo_folders.photos(settings)
    known = [photo for photo in photos if stem_of(photo.key) in table.rows]
    domains = _domains(known, table, by, settings.balance)
    kept = [photo for photo in known if photo.key in domains]
    if set(domains.values()) != {"A", "B"} or len(kept) < 4:
        sizes = [sum(value == domain for value in domains.values()) for domain in "AB"]
        raise DistillError(
            f"split={by}: {counted(sizes[0], 'photo')} with it and {sizes[1]} without are left of "
            f"{counted(len(photos), 'photo')}, {len(known)} of them in {table.path}"
        )
    people = settings.identities and home_path(settings.identities)
    edges = _of_one_person(kept, people) if people else NO_EDGES
    places = _places(kept, domains, settings, edges)
    counts = {place: len(each) for place, each in places.items()}
    summary = ", ".join(f"{place}: {counted(count, 'photo')}" for place, count in counts.items())
    if not all(counts.values()):
        raise DistillError(
            f"split={by}: {summary}; training needs one in each, add photos or set "
            "data.val_fraction"
        )

    with new_set(settings, f"{photo_folders.set_name(settings)}-{by}") as (folder, root):
        for place, each in places.items():
            for photo in each:
                link(photo, folder / place)
        write_json(folder / "attributes.json", {
            "split": by, "balance": settings.balance, "identities": bool(settings.identities),
            "counts": counts, "not in the list": len(photos) - len(known),
        })  # fmt: skip
    print(summary)
    if len(known) < len(photos):
        print(f"{counted(len(photos) - len(known), 'photo')} not in {table.path}, left out")
    print(f"A: {by}, B: not {by}, in {root}")
    return root


def _places(
    photos: Sequence[Photo], domains: Mapping[str, str], settings: PrepareWithSets, edges: Edges
) -> dict[str, list[Photo]]:
    """The photos of trainA, trainB, testA and testB.

    Of few photos one of these may be empty: the first seed from `data.split_seed` on that fills
    all of them is taken, if there is one.
    """
    first = settings.data.split_seed
    for seed in range(first, first + SEEDS):
        places = {f"{folder}{d}": list[Photo]() for folder in FOLDERS.values() for d in "AB"}
        sides = split(photos, settings.data.val_fraction, seed, edges)
        for side, folder in FOLDERS.items():
            for photo in sides[side]:
                places[f"{folder}{domains[photo.key]}"].append(photo)
        if all(places.values()):
            break
    return places


@contextmanager
def new_set(settings: PrepareWithSets, name: str) -> Iterator[tuple[Path, Path]]:
    """A folder for two domains and where it lies at the end, with its terms: in data.root, or
    data/domains/NAME. Raises DistillError where that is."""
    root = Path(settings.data.root or f"data/domains/{name}")
    if root.exists():
        raise DistillError(f"{root}: is there; remove it, or name another folder by data.root=DIR")
    with scratch_folder(root) as scratch:
        yield scratch / "set", root
        keep_terms(scratch / "set", settings, taught=False)
        os.replace(scratch / "set", root)


def link(photo: Photo, folder: Path) -> None:
    """Have a folder hold the photo's file, below it as it lies below its own."""
    target = folder / photo.key
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(photo.local, target)
    except OSError:  # another file system, or one without links
        shutil.copy2(photo.local, target)


def _domains(
    photos: Sequence[Photo], table: Table, by: str, balance: Sequence[str]
) -> dict[str, str]:
    """A or B by a photo's key; of a combination that is too frequent those are left out that a
    hash of their names chooses."""
    cells = defaultdict[tuple[bool, ...], tuple[list[str], list[str]]](lambda: ([], []))
    for photo in sorted(photos, key=lambda p: hashlib.sha256(p.key.encode()).digest()):
        others = tuple(table.has(photo, name) for name in balance)
        cells[others][0 if table.has(photo, by) else 1].append(photo.key)
    domains: dict[str, str] = {}
    for cell in cells.values():
        most = min(map(len, cell)) if balance else len(photos)
        for domain, keys in zip("AB", cell, strict=True):
            domains |= dict.fromkeys(keys[:most], domain)
    return domains


def _of_one_person(photos: Sequence[Photo], path: Path) -> Edges:
    """Pairs of numbers of photos of one person. Raises DistillError for a photo of nobody."""
    people = read_table(path, header=["identity"])
    same = defaultdict[str, list[int]](list)
    for number, photo in enumerate(photos):
        if stem_of(photo.key) not in people.rows:
            raise DistillError(f"{path}: says not who is on {photo.key}")
        same[people.value(photo, people.columns[0])].append(number)
    pairs = [pair for numbers in same.values() for pair in pairwise(numbers)]
    return np.array(pairs, np.int32).reshape(-1, 2)
