"""The shards of a published set: which files they are, and whether they are whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from distill.core.errors import DistillError
from distill.data.shards.address import Address
from distill.data.shards.shard_index import (
    Catalogue,
    part_path,
    read_rows_of,
    read_shard_row,
    shard_path,
    write_part,
)

REPAIR = "run the command that made the set again to repair it"


def shards_and_index(root: Address, scratch: Path) -> dict[str, Path]:
    """The tar files of a local set and their parts of the index, by their paths there.

    A part that names photos of which no pair could be made is written without them below `scratch`:
    lists of what was left out stay at home. Raises DistillError where a file is missing.
    """
    assert root.local is not None
    files = dict[str, Path]()
    for shard in _names(root):
        row = read_shard_row(root, shard)
        tar, part = root.local / shard_path(shard), root.local / part_path(shard)
        if row is None or not tar.is_file():
            lost = part if row is None else tar
            raise DistillError(f"{lost}: not there, or damaged; {REPAIR}")
        if row.skipped:
            write_part(Address(scratch), replace(row, skipped={}), read_rows_of(root, shard))
            part = scratch / part_path(shard)
        files |= {shard_path(shard): tar, part_path(shard): part}
    return files


def check_whole(root: Address, sums: Mapping[str, str]) -> None:
    """Raises DistillError where a tar file is not what the catalogue says, by these SHA-256."""
    catalogue = Catalogue(root)
    for number in range(len(catalogue)):
        path = shard_path(catalogue.name(number))
        if sums[path] != catalogue.sha256(number):
            raise DistillError(f"{root}/{path}: damaged; {REPAIR}")


def remove_others(root: Path, expected: Collection[str]) -> None:
    """Remove shards, and parts of the index, that are no part of the set: of one that was replaced
    labelling would take them up."""
    for folder in ("shards", "index"):
        for path in (root / folder).glob("[!.]*"):
            if f"{folder}/{path.name}" not in expected:
                path.unlink()


def _names(root: Address) -> list[str]:
    catalogue = Catalogue(root)
    return [catalogue.name(number) for number in range(len(catalogue))]
