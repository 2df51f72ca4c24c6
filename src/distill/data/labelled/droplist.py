"""drop=FILE: pictures to leave out, one a line.

A line is a photo's path below its folder, its bare file name, or the name of a PNG of the set.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from distill.core.errors import DistillError
from distill.data.labelled.register import pair_of
from distill.data.photos import Photo


def check_list(path: Path) -> None:
    """Raises DistillError where drop=FILE names no file."""
    if not path.is_file():
        raise DistillError(
            f"drop={path}: no such file; write the pictures to leave out, one a line"
        )


def meant(
    lines: Sequence[str], photos: Sequence[Photo], pairs: Iterable[str]
) -> tuple[set[str], list[str]]:
    """The pair names that the lines mean, of photos and of pairs whose photo is gone.

    And the lines that mean nothing.
    """
    if not lines:
        return set(), []
    wanted, met = set(lines), set()
    as_pair = {pair_of(line): line for line in lines if line.endswith(".png")}
    found = set()
    for photo in photos:
        inside = photo.key.removeprefix(f"{photo.folder}/") if photo.folder else photo.key
        hits = {photo.key, inside, Path(inside).name} & wanted
        if photo.pair_name in as_pair:
            hits.add(as_pair[photo.pair_name])
        if hits:
            found.add(photo.pair_name)
            met |= hits
    on_disk = as_pair.keys() & pairs
    met |= {as_pair[pair] for pair in on_disk}
    return found | on_disk, [line for line in lines if line not in met]


def warn(idle: Sequence[str]) -> None:
    """One line about the lines that mean nothing."""
    if idle:
        first = f"the first: {idle[0]!r}" if len(idle) > 1 else repr(idle[0])
        count = f"{len(idle)} lines name" if len(idle) > 1 else "a line names"
        warnings.warn(f"drop: {count} no photo, {first}", stacklevel=2)
