"""What still holds pictures that were just left out of a set: named, not deleted.

ROOT/takedown.txt    what each command that left pictures out found, the newest last
ROOT/published.txt   where the set, or a run's student, was pushed to
"""

from __future__ import annotations

import time
from ast import literal_eval
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from distill.config.registry import settings_of
from distill.config.settings.training import PhotoSource
from distill.core.errors import DistillError, counted
from distill.core.files import cache_folder, home_path, real_path, write_whole
from distill.data import sources
from distill.data.photo_table import pair_of, read_rows
from distill.data.shards.shard_manifest import KEPT

TAKEDOWN, PUBLISHED = "takedown.txt", "published.txt"
SETS = ("pairs", "shards", "sketches")  # below data/
SHOWN = 12  # lines


def report_takedown(
    root: Path, pictures: Mapping[str, str], runs: Path, own: Path | None = None
) -> None:
    """Find and say what still holds these `pictures`, by pair name the photo's key; nothing of no
    pictures. The folder `own` of the set's own files, None: `root`, keeps what was found."""
    if not pictures:
        return
    folder = own or root
    sets = dict(_sets_with(root, pictures))
    trained = _trained_on({real_path(each) for each in (root, *sets)}, runs)
    places = [
        f"set    {each}: {counted(count, 'pair')} of these names" for each, count in sets.items()
    ]
    for run, why in trained.items():
        exported = ", its exports too" if (run / "export").is_dir() else ""
        places.append(f"run    {run}: its student {why}{exported}; its previews may show them")
    for each in (root, *sets, *trained):
        places += [f"public {where}: pushed from {each}" for where in _lines(each / PUBLISHED)]
    kept = [path for path in cache_folder().rglob("*.png") if pair_of(path.name) in pictures]
    page = [path for path in (Path("data/curation") / root.name,) if path.is_dir()]
    places += [f"copy   {path}" for path in (*kept, *page)]
    told = f"left out {len(pictures)}, {', '.join(sorted(pictures.values())[:3])}"
    head = f"{time.strftime('%Y-%m-%d %H:%M')} {told}; places known to hold it: {len(places)}"
    with suppress(OSError):
        lines = [*_lines(folder / TAKEDOWN), head, *places]
        write_whole(folder / TAKEDOWN, "".join(f"{line}\n" for line in lines))
    shown = "\n".join(places[:SHOWN])
    print(f"{head}; nothing of it is deleted, {folder / TAKEDOWN} lists all\n{shown}".rstrip())


def note_published(folder: Path, where: str) -> None:
    """Remember where what lies in this folder was pushed to."""
    lines = dict.fromkeys([*_lines(folder / PUBLISHED), where])
    with suppress(OSError):
        write_whole(folder / PUBLISHED, "".join(f"{line}\n" for line in lines))


def _lines(path: Path) -> list[str]:
    with suppress(OSError):
        return path.read_text(errors="replace").splitlines()
    return []


def _sets_with(root: Path, pictures: Mapping[str, str]) -> Iterator[tuple[Path, int]]:
    """Other sets, below data/ and beside this one, with pairs of these names, and how many."""
    beside = [*root.parent.glob("*"), *(p for kind in SETS for p in Path("data", kind).glob("*"))]
    keys = {*pictures.values()}
    for real, each in sorted({real_path(path): path for path in beside}.items()):
        for files in (each, each / KEPT):
            with suppress(DistillError):  # a damaged list
                rows = [row for row in read_rows(files).values() if row.side]
                count = sum(r.pair in pictures or literal_eval(r.key) in keys for r in rows)
                if count and real != real_path(root):
                    yield each, count


def _trained_on(sets: set[Path], runs: Path) -> dict[Path, str]:
    """The runs whose students learnt from one of these sets, or started from or were taught by
    such a student, and which of these it was."""
    known = dict[Path, tuple[set[Path], set[Path]]]()
    for path in sorted(runs.rglob("config.yaml")):
        with suppress(OSError, ValueError, yaml.YAMLError, RecursionError, AttributeError):
            known[path.parent] = _made_from(yaml.safe_load(path.read_text()))
    found = {run: "learnt from it" for run, (own, _) in known.items() if sets & own}
    while more := {
        run: "started from or was taught by such a student"
        for run, (_, parents) in known.items()
        if run not in found and parents & {*map(real_path, found)}
    }:
        found |= more
    return found


def _made_from(trained: dict[str, Any]) -> tuple[set[Path], set[Path]]:
    """The set that a run learnt from, and the folders in which the student that it started from,
    or that was its teacher, lies."""
    roots = [str((trained.get("data") or {}).get("root") or "")]
    with suppress(DistillError):
        if not roots[0] and isinstance(source := settings_of(trained), PhotoSource):
            sharded = source.data.kind == "shards"
            roots = [str(sources.shards_root(source) if sharded else sources.pairs_root(source))]
    named = (trained.get("init"), (trained.get("teacher") or {}).get("path"))
    paths = [real_path(home_path(each)) for each in named if isinstance(each, str)]
    parents = {up for path in paths for up in (path, *path.parents[:2])}
    return {real_path(home_path(each)) for each in roots if each}, parents
