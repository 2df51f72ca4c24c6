"""A set of pairs of distill.prepare as it is published: its pairs, what made them, its card.

Lists of what was left out stay at home, and so does the path that the photos lay in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

from distill.core.errors import DistillError
from distill.core.files import scratch_folder, write_json, write_whole
from distill.data.labelled.lock import writing
from distill.data.labelled.manifest import MANIFEST, is_complete
from distill.data.labelled.register import PAIR_FOLDERS, PHOTOS, SIDES, png_names
from distill.data.labelled.teacher_pass import TEACHER
from distill.data.sketches.sketch_set import PREVIEW
from distill.sharing import transfer
from distill.sharing.places import Place
from distill.sharing.set_card import CARD, SHEET
from distill.sharing.transfer import SUMS

BESIDE = (CARD, SHEET, PHOTOS, PREVIEW)  # as they are, where they are there
LAST = (MANIFEST, SUMS)  # a set without them is none yet


def push_set(root: Path, place: Place, replace: bool) -> None:
    """Publish the set at `root`. Raises DistillError where it is not whole, or has no card."""
    if not root.is_dir() or not is_complete(root):
        raise DistillError(
            f"data.root={root}: no whole set of distill.prepare; that command makes it, or goes on"
        )
    if not (root / CARD).is_file():
        raise DistillError(
            f"{root}: has no {CARD} to say what it is and under which terms; the command that made "
            "it writes one with card=true"
        )
    with _published(root) as files:
        count = transfer.push(files, place, LAST, replace)
    print(f"{place.name}: {len(files):,} files, {count:,} of them new")


def pull_set(place: Place, root: Path, replace: bool) -> None:
    """Fetch a published set into `root`, or what is missing there, every file checked."""
    there = place.hashes()
    if SUMS not in there:
        raise DistillError(
            f"repo={place.name}: no set that was pushed to its end ({SUMS} is missing)"
        )
    with writing(root):
        with scratch_folder(root.with_name(f"{root.name}.sums")) as scratch:
            place.fetch([SUMS], scratch)
            if not there[SUMS].fits(scratch / SUMS):
                raise DistillError(f"repo={place.name}: {SUMS} came damaged; pull again")
            text = _text(scratch / SUMS, place)
        expected = transfer.read_sums(text, f"repo={place.name}")
        if MANIFEST not in expected:
            raise DistillError(f"repo={place.name}: no set of pairs ({MANIFEST} is missing)")
        count = transfer.pull(expected, place, root, LAST, replace)
        write_whole(root / SUMS, text)
    print(f"{root}: {len(expected):,} files, {count:,} of them new")


@contextmanager
def _published(root: Path) -> Iterator[dict[str, Path]]:
    """Every file by its path in the set, with sha256sums.txt."""
    files = {name: root / name for name in BESIDE if (root / name).is_file()}
    for side in SIDES:
        for folders in PAIR_FOLDERS:
            both = set.intersection(*(png_names(root, side, folder) for folder in folders))
            for folder in folders:
                files |= {f"{side}/{folder}/{n}": root / side / folder / n for n in sorted(both)}
    with scratch_folder(root.with_name(f"{root.name}.pushed")) as scratch:
        for name in (MANIFEST, TEACHER):
            if (root / name).is_file():
                write_json(scratch / name, without_paths(json.loads((root / name).read_text())))
                files[name] = scratch / name
        (scratch / SUMS).write_bytes(transfer.sums_of(files).encode())
        files[SUMS] = scratch / SUMS
        yield files


def without_paths(content: dict[str, Any]) -> dict[str, Any]:
    """What dataset.json or teacher.json say, without the folders of the machine that made them."""
    kept = dict(content)
    if isinstance(made := kept.get("recipe"), dict) and isinstance(made.get("photos"), str):
        names = (PurePath(each).name for each in made["photos"].split(" + "))
        kept["recipe"] = made | {"photos": " + ".join(names)}
    if "/" in str(kept.get("settings", "")):  # of a teacher that is a run, with a file of its own
        kept["settings"] = ""
    return kept


def _text(path: Path, place: Place) -> str:
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise DistillError(f"repo={place.name}: {SUMS}: damaged; push the set again") from error
