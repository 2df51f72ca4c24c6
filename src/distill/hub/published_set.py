"""A set of pairs of distill.prepare as it is published: its pairs, what made them, its card.

A folder of PNGs or shards. Lists of what was left out stay at home, and so does the path that the
photos lay in.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path, PurePath
from typing import Any

from distill.core.errors import DistillError
from distill.core.files import scratch_folder, write_json, write_whole
from distill.core.next_step import next_step
from distill.data.cards.set_card import CARD, SHEET
from distill.data.lock import writing
from distill.data.manifest import MANIFEST, PREVIEW, TEACHER, is_complete
from distill.data.photo_table import PAIR_FOLDERS, PHOTOS, SIDES, png_names
from distill.data.shards.address import Address
from distill.data.shards.shard_index import CATALOGUE
from distill.data.shards.shard_manifest import KEPT, finished_shards, shard_manifest_at
from distill.hub import published_shards, transfer
from distill.hub.remotes import Remote
from distill.hub.transfer import SUMS

BESIDE = (CARD, SHEET, PHOTOS, PREVIEW)  # as they are, where they are there
LAST = (MANIFEST, SUMS)  # a set without them is none yet


def push_set(root: Path, place: Remote, replace: bool) -> None:
    """Publish the set at `root`. Raises DistillError where it is not whole, or has no card."""
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
    with scratch_folder(root.with_name(f"{root.name}.pushed")) as scratch:
        files = _files_of_shards(root, scratch) if sharded else _files_of_folder(root, scratch)
        sums = transfer.sums_of(files)
        if sharded:
            published_shards.check_whole(Address(root), transfer.read_sums(sums, str(root)))
        (scratch / SUMS).write_bytes(sums.encode())
        files[SUMS] = scratch / SUMS
        count = transfer.push(files, place, LAST, replace)
    print(f"{place.name}: {len(files):,} files, {count:,} of them new")


def pull_set(place: Remote, root: Path, replace: bool) -> None:
    """Fetch a published set into `root`, or what is missing there, every file checked."""
    text = _sums_at(place, root)
    expected = transfer.read_sums(text, f"repo={place.name}")
    if MANIFEST not in expected:
        raise DistillError(f"repo={place.name}: no set of pairs ({MANIFEST} is missing)")
    sharded = CATALOGUE in expected
    with writing(root, folders=not sharded):
        count = transfer.pull(expected, place, root, LAST, replace)
        if sharded and replace:
            published_shards.remove_others(root, expected)
        write_whole(root / SUMS, text)
    print(f"{root}: {len(expected):,} files, {count:,} of them new")
    print(next_step("train", **({"data": "shards"} if sharded else {}), **{"data.root": str(root)}))


def _sums_at(place: Remote, root: Path) -> str:
    """The text of the sums there, by way of a folder beside `root`."""
    there = place.hashes([SUMS])
    if SUMS not in there:
        raise DistillError(
            f"repo={place.name}: no set that was pushed to its end ({SUMS} is missing)"
        )
    with scratch_folder(root.with_name(f"{root.name}.sums")) as scratch:
        place.fetch([SUMS], scratch)
        if not there[SUMS].fits(scratch / SUMS):
            raise DistillError(f"repo={place.name}: {SUMS} was damaged in transfer; pull again")
        return _text(scratch / SUMS, place)


def _files_of_folder(root: Path, scratch: Path) -> dict[str, Path]:
    """Every file of a folder of pairs by its path there."""
    files = _beside(root, BESIDE)
    for side in SIDES:
        for folders in PAIR_FOLDERS:
            both = set.intersection(*(png_names(root, side, folder) for folder in folders))
            for folder in folders:
                files |= {f"{side}/{folder}/{n}": root / side / folder / n for n in sorted(both)}
    return files | _told(root, (MANIFEST, TEACHER), scratch)


def _files_of_shards(root: Path, scratch: Path) -> dict[str, Path]:
    """The same of shards: tar files, their index, the catalogue, and set/ without its lists."""
    files = _beside(root, (CARD, SHEET, CATALOGUE, f"{KEPT}/{PHOTOS}"))
    files |= published_shards.shards_and_index(Address(root), scratch)
    return files | _told(root, (MANIFEST, f"{KEPT}/{MANIFEST}", f"{KEPT}/{TEACHER}"), scratch)


def _beside(root: Path, names: Collection[str]) -> dict[str, Path]:
    return {name: root / name for name in names if (root / name).is_file()}


def _told(root: Path, names: Collection[str], scratch: Path) -> dict[str, Path]:
    """What these files say, without paths, as files below `scratch`."""
    for name, path in (found := _beside(root, names)).items():
        write_json(scratch / name, without_paths(json.loads(path.read_text())))
    return {name: scratch / name for name in found}


def without_paths(content: dict[str, Any]) -> dict[str, Any]:
    """What dataset.json or teacher.json say, without the folders of the machine that made them."""
    kept = dict(content)
    if isinstance(made := kept.get("recipe"), dict) and isinstance(made.get("photos"), str):
        names = (PurePath(each).name for each in made["photos"].split(" + "))
        kept["recipe"] = made | {"photos": " + ".join(names)}
    if "/" in str(kept.get("settings", "")):  # of a teacher that is a run, with a file of its own
        kept["settings"] = ""
    return kept


def _text(path: Path, place: Remote) -> str:
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise DistillError(f"repo={place.name}: {SUMS}: damaged; push the set again") from error
