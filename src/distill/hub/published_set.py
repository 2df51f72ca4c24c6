"""A set of pairs of distill.prepare as it is published: its pairs, what made them, its card.

A folder of PNGs or shards. Lists of what was left out stay at home, and so does the path that the
photos lay in.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace as replaced
from itertools import product
from pathlib import Path, PurePath
from typing import Any

from distill.core.errors import DistillError, counted
from distill.core.files import scratch_folder, write_json, write_whole
from distill.core.next_step import next_step
from distill.core.terms import Terms
from distill.data.address import Address
from distill.data.cards.set_card import CARD, SHEET
from distill.data.manifest import MANIFEST, PREVIEW, TEACHER, TERMS, is_complete, writing
from distill.data.photo_table import (
    LAYER_FOLDER,
    PAIR_FOLDERS,
    PHOTOS,
    SIDES,
    TEACHER_FOLDERS,
    png_names,
)
from distill.data.shards.shard_index import (
    CATALOGUE,
    Catalogue,
    part_path,
    read_rows_of,
    read_shard_row,
    shard_path,
    write_part,
)
from distill.data.shards.shard_manifest import KEPT, finished_shards, shard_manifest_at
from distill.data.takedown import note_published, set_with_takedown
from distill.data.terms import kept_terms
from distill.hub import transfer
from distill.hub.transfer import SUMS, Remote

LAST = (MANIFEST, SUMS)  # a set without them is none yet
REPAIR = "run the command that made the set again to repair it"


def push_set(root: Path, place: Remote, replace: bool, accept: str | None = None) -> None:
    """Publish the set at `root`. Raises DistillError where it is not whole, has no card, or holds
    pictures that were taken down, unless it is published for the reason `accept`."""
    sharded = _check_whole(root)
    with scratch_folder(root.with_name(f"{root.name}.pushed")) as scratch:
        files = _shards_and_index(root, scratch) if sharded else _pictures(root)
        files |= _documents(root, scratch, sharded, accept)
        sums = transfer.sums_of(files)
        if sharded:
            _check_shards(root, transfer.read_sums(sums, str(root)))
        (scratch / SUMS).write_bytes(sums.encode())
        files[SUMS] = scratch / SUMS
        gone = _no_longer(files, place, scratch / "before") if replace else []
        if gone:
            place.remove(gone)
        count = transfer.push(files, place, LAST, replace)
    note_published(root, place.name)
    removed = f", {len(gone):,} others removed" if gone else ""
    print(f"{place.name}: {counted(len(files), 'file')}, {count:,} of them new{removed}")


def _check_whole(root: Path) -> bool:
    """Whether the set is of shards. Raises DistillError for one that is not complete."""
    sharded = shard_manifest_at(Address(root)) is not None
    if sharded:
        finished_shards(Address(root))
    elif not root.is_dir() or not is_complete(root):
        raise DistillError(
            f"data.root={root}: no complete set of distill.prepare; run that command to make or "
            "finish it"
        )
    if not (root / CARD).is_file():
        raise DistillError(
            f"{root}: has no {CARD} to say what it is and under which terms; the command that made "
            "it writes one with card=true"
        )
    return sharded


def _pictures(root: Path) -> dict[str, Path]:
    """The pairs of a set of PNGs by their paths there, without those that lack a side, and the
    layers of lines beside them."""
    files: dict[str, Path] = {}
    for side, folders in product(SIDES, PAIR_FOLDERS):
        names = set.intersection(*(png_names(root, side, folder) for folder in folders))
        names_of = dict.fromkeys(folders, names)
        if folders == TEACHER_FOLDERS:
            names_of[LAYER_FOLDER] = names & png_names(root, side, LAYER_FOLDER)
        for folder, files_of in names_of.items():
            files |= {f"{side}/{folder}/{n}": root / side / folder / n for n in sorted(files_of)}
    return files


def _documents(root: Path, scratch: Path, sharded: bool, accept: str | None) -> dict[str, Path]:
    """Card, terms, lists and manifests, by their paths there; what is changed is below `scratch`.

    Manifests lose the folders of this machine. Terms and card state a takedown that is accepted.
    Raises DistillError for one that is not.
    """
    kept = f"{KEPT}/" if sharded else ""
    pictures = (SHEET, CATALOGUE) if sharded else (SHEET, PREVIEW)
    files = _beside(root, (CARD, *pictures, f"{kept}{PHOTOS}", f"{kept}{TERMS}"))
    terms = Terms(kept_terms(root))
    published = set_with_takedown(terms, root).published(f"data.root={root}", accept)
    for link in published.chain[len(terms.chain) :]:
        write_whole(scratch / CARD, f"{(root / CARD).read_text()}\n{link.text}.\n")
        write_json(scratch / f"{kept}{TERMS}", published.plain())
        files |= {name: scratch / name for name in (CARD, f"{kept}{TERMS}")}
    for name, path in _beside(root, (MANIFEST, f"{kept}{MANIFEST}", f"{kept}{TEACHER}")).items():
        write_json(scratch / name, without_paths(json.loads(path.read_text())))
        files[name] = scratch / name
    return files


def _check_shards(root: Path, digests: Mapping[str, str]) -> None:
    """Raises DistillError for a shard that is not what the catalogue says."""
    catalogue = Catalogue(Address(root))
    for number in range(len(catalogue)):
        tar = shard_path(catalogue.name(number))
        if digests[tar] != catalogue.sha256(number):
            raise DistillError(f"{root}/{tar}: damaged; {REPAIR}")


def _no_longer(files: Collection[str], place: Remote, scratch: Path) -> list[str]:
    """What the version that is there has and this one has not, as a picture that was taken down."""
    with suppress(DistillError, OSError, UnicodeDecodeError):  # there is none, or a damaged one
        place.fetch([SUMS], scratch)
        there = transfer.read_sums((scratch / SUMS).read_bytes().decode(), place.name)
        return sorted(there.keys() - {*files})
    return []


def pull_set(place: Remote, root: Path, replace: bool) -> None:
    """Fetch a published set into `root`, or what is missing there, every file checked."""
    there = place.hashes([SUMS])
    if SUMS not in there:
        raise DistillError(
            f"repo={place.name}: no set that was pushed to its end ({SUMS} is missing)"
        )
    with scratch_folder(root.with_name(f"{root.name}.sums")) as scratch:
        place.fetch([SUMS], scratch)
        if not there[SUMS].fits(scratch / SUMS):
            raise DistillError(f"repo={place.name}: {SUMS} was damaged in transfer; pull again")
        try:
            text = (scratch / SUMS).read_bytes().decode()
        except UnicodeDecodeError as error:
            raise DistillError(f"repo={place.name}: {SUMS}: damaged; push the set again") from error
    expected = transfer.read_sums(text, f"repo={place.name}")
    if MANIFEST not in expected:
        raise DistillError(f"repo={place.name}: no set of pairs ({MANIFEST} is missing)")
    sharded = CATALOGUE in expected
    with writing(root, folders=not sharded):
        count = transfer.pull(expected, place, root, LAST, replace)
        if sharded and replace:  # labelling would take up shards of the set that was replaced
            for path in (*root.glob("shards/[!.]*"), *root.glob("index/[!.]*")):
                if path.relative_to(root).as_posix() not in expected:
                    path.unlink()
        write_whole(root / SUMS, text)
    print(f"{root}: {counted(len(expected), 'file')}, {count:,} of them new")
    print(next_step("train", **({"data": "shards"} if sharded else {}), **{"data.root": str(root)}))


def _beside(root: Path, names: Collection[str]) -> dict[str, Path]:
    return {name: root / name for name in names if (root / name).is_file()}


def _shards_and_index(root: Path, scratch: Path) -> dict[str, Path]:
    """The tar files of a local set and their parts of the index, by their paths there.

    A part that names photos of which no pair could be made is written without them below `scratch`:
    lists of what was left out stay at home. Raises DistillError where a file is missing.
    """
    files, address = dict[str, Path](), Address(root)
    catalogue = Catalogue(address)
    for shard in map(catalogue.name, range(len(catalogue))):
        row = read_shard_row(address, shard)
        tar, part = root / shard_path(shard), root / part_path(shard)
        if row is None or not tar.is_file():
            gap = part if row is None else tar
            raise DistillError(f"{gap}: not there, or damaged; {REPAIR}")
        if row.skipped:
            write_part(Address(scratch), replaced(row, skipped={}), read_rows_of(address, shard))
            part = scratch / part_path(shard)
        files |= {shard_path(shard): tar, part_path(shard): part}
    return files


def without_paths(content: dict[str, Any]) -> dict[str, Any]:
    """What dataset.json or teacher.json say, without the folders of the machine that made them."""
    portable = dict(content)
    if isinstance(recipe := portable.get("recipe"), dict) and isinstance(recipe.get("photos"), str):
        names = (PurePath(each).name for each in recipe["photos"].split(" + "))
        portable["recipe"] = recipe | {"photos": " + ".join(names)}
    if "/" in str(
        portable.get("settings", "")
    ):  # of a teacher that is a run, with a file of its own
        portable["settings"] = ""
    return portable
