"""Pictures that were taken down: what still holds them is named, and not published unasked.

ROOT/takedown.txt    of a set, and RUN/takedown.txt of a run that learnt from it: every picture,
                     what is known by its content, the places that held them; the newest last
ROOT/published.txt   where the set, or a run's student, was pushed to
"""

from __future__ import annotations

import json
import os
import re
import time
from ast import literal_eval
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import yaml

from distill.config.registry import settings_of
from distill.config.settings.training import PhotoSource
from distill.core import plugins
from distill.core.errors import DistillError, counted
from distill.core.files import cache_folder, home_path, real_path, sha256, write_whole
from distill.core.terms import TAKEN_DOWN, Licence, Terms
from distill.data.dropped import content_line, contents_named, copies
from distill.data.manifest import manifest_at
from distill.data.photo_table import (
    RUN_PAIRS,
    PhotoRow,
    pair_of,
    read_dropped,
    read_rows,
    read_sides,
)
from distill.data.photos import Photo
from distill.data.set_files import KEPT

TAKEDOWN, PUBLISHED = "takedown.txt", "published.txt"
NETWORKS = {".ckpt", ".onnx", ".safetensors"}
SHOWN = 12  # lines
_PICTURE = re.compile(r"picture (\S+) (.+)")


def report_takedown(
    root: Path,
    pictures: Mapping[str, str],
    runs: Path = Path("runs"),
    own: Path | None = None,
    contents: Sequence[str] = (),
    restored: Iterable[str] = (),
) -> None:
    """Find and say what still holds these `pictures`, by pair name the photo's key; nothing of no
    pictures. The folder `own` of the set's own files, None: `root`, keeps what was found.

    `contents` are lines for the pictures' files (`content_line`), `restored` the pair names of
    pictures that may be used again.
    """
    folder = own or root
    if back := {*restored} & _pictures(folder / TAKEDOWN).keys():
        for file in (folder / TAKEDOWN, *runs.rglob(TAKEDOWN)):
            _write(file, _lifted(read_dropped(file), back))
    if not pictures:
        return
    sets = dict(_sets_with(root, pictures))
    trained = _trained_on({real_path(each) for each in (root, *sets)}, pictures, runs)
    places = [
        f"set    {each}: {counted(count, 'pair')} of these names" for each, count in sets.items()
    ]
    for run, why in trained.items():
        exported = ", its exports too" if (run / "export").is_dir() else ""
        places.append(f"run    {run}: its student {why}{exported}; its previews may show them")
    for each in (root, *sets, *trained):
        pushed = read_dropped(each / PUBLISHED)
        places += [f"public {where}: pushed from {each}" for where in pushed]
    kept = [path for path in cache_folder().rglob("*.png") if pair_of(path.name) in pictures]
    if (page := Path("data/curation") / root.name).is_dir():
        kept.append(page)
    places += [f"copy   {path}" for path in kept]
    head = f"{time.strftime('%Y-%m-%d %H:%M')} left out {counted(len(pictures), 'picture')}; "
    head += f"places known to hold them: {len(places)}"
    named = [f"picture {p} {json.dumps(key, ensure_ascii=False)}" for p, key in pictures.items()]
    made = [line for run in trained for line in _files_of(run)]
    for file in (folder / TAKEDOWN, *(run / TAKEDOWN for run in trained)):
        lines = [*read_dropped(file), head, *named, *contents, *made, *places]
        _write(file, dict.fromkeys(lines))  # a picture that is named twice has one line
    shown = "\n".join(places[:SHOWN])
    print(f"{head}; nothing of it is deleted, {folder / TAKEDOWN} names all\n{shown}".rstrip())


def with_takedown(terms: Terms, path: Path) -> Terms:
    """The terms of a network's file beside a link for pictures that were taken down since its run
    learnt from them; the file may be a copy."""
    run = next((up for up in path.absolute().parents[:4] if (up / "config.yaml").is_file()), None)
    count = len(_of_run(run, set()) if run else {}) or _of_copy(path)
    return _beside(terms, count, "that it learnt from")


def set_with_takedown(terms: Terms, root: Path) -> Terms:
    """The same for the pictures that the set at `root` holds."""
    return _beside(terms, len(_held(root, None)), "that it holds")


def learnt_before(run: Path) -> dict[str, str]:
    """The pictures that a run learnt from before its set left them out: by pair name the key."""
    names = (name for name, _ in read_sides(run / RUN_PAIRS))
    return _among(_pictures(run / TAKEDOWN), names)


def note_published(folder: Path, where: str) -> None:
    """Remember where what lies in this folder was pushed to."""
    _write(folder / PUBLISHED, dict.fromkeys([*read_dropped(folder / PUBLISHED), where]))


def _beside(terms: Terms, count: int, whose: str) -> Terms:
    text = f"taken down: {counted(count, 'picture')} {whose}"
    told = any(e.stated and e.of == TAKEN_DOWN and e.text.startswith(text) for e in terms.chain)
    if not count or told:
        return terms
    return terms.beside(Licence(TAKEN_DOWN, commercial="no", text=text))


def _of_run(run: Path, seen: set[Path]) -> dict[str, str]:
    """The pictures that were taken down since the student of a run learnt from them, or since the
    one did that it started from or was taught by."""
    if real_path(run) in seen:
        return {}
    found, (roots, parents) = _pictures(run / TAKEDOWN), _made_from(run)
    names = {name for name, _ in read_sides(run / RUN_PAIRS)} or None
    for root in roots:
        found |= _held(root, names)
    for parent in parents:
        if (parent / "config.yaml").is_file():
            found |= _of_run(parent, {*seen, real_path(run)})
    return found


def _of_copy(path: Path) -> int:
    """How many pictures were taken down that such a file was made with, wherever it lies now."""
    runs = (file for depth in ("*", "*/*") for file in Path("runs").glob(f"{depth}/{TAKEDOWN}"))
    for file in (*_records(path.parent), *runs):
        if copies([Photo(path, path.name)], read_dropped(file)):
            return len(_pictures(file))
    return 0


def _held(root: Path, learnt: set[str] | None) -> dict[str, str]:
    """The pictures taken down, of this set or another one, that the set at `root` holds; with the
    names of the pairs that a run `learnt`, those among them."""
    found = dict[str, str]()
    for file in _records(root):
        pictures = _pictures(file)
        of = file.parents[1] if file.parent.name == KEPT else file.parent
        if learnt is not None and (real_path(of) == real_path(root) or not root.exists()):
            found |= _among(pictures, learnt)
        if real_path(of) == real_path(root):
            continue
        for name, here in _same_files(root, read_dropped(file)):
            if learnt is None or here in learnt:
                found[pair_of(name)] = pictures.get(pair_of(name), name)
        with suppress(DistillError):  # of the same photos, by another teacher or of another size
            if (photos := _photos_of(of)) and photos == _photos_of(root):
                there = _among(pictures, (row.pair for row in _rows(root)))
                found |= there if learnt is None else _among(there, learnt)
    return found


def _among(pictures: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Those of the pictures of which there is a pair of these names; pairs of one's own are called
    by their photo's file name."""
    there = {each for name in names for each in (name, pair_of(name))}
    return {
        p: key for p, key in pictures.items() if not there.isdisjoint((p, os.path.basename(key)))
    }


def _same_files(root: Path, lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Files below `root` whose content a line names: the name in the line, and the one there."""
    names = {each[:2]: each[2] for each in contents_named(lines)}
    files = (Path(top, file) for top, _, found in os.walk(root) for file in found) if names else ()
    for photo in copies((Photo(path, path.name) for path in files), lines):
        yield names[photo.local.stat().st_size, sha256(photo.local)], photo.key


def _rows(root: Path) -> list[PhotoRow]:
    """The photos of which the set has pairs; none of a damaged list."""
    with suppress(DistillError):
        return [row for at in (root, root / KEPT) for row in read_rows(at).values() if row.side]
    return []


def _photos_of(root: Path) -> str:
    return str((manifest_at(root / KEPT) or manifest_at(root) or {}).get("photos", ""))


def _records(root: Path) -> list[Path]:
    """The lists of this set and of others, below data/ and beside it."""
    files = (each / name / TAKEDOWN for each in (root, *_near(root)) for name in ("", KEPT))
    return [*{real_path(file): file for file in files if file.is_file()}.values()]


def _near(root: Path) -> Iterator[Path]:
    """What lies beside a set, and below data/ where sets usually are."""
    yield from root.parent.glob("*")
    for kind in ("pairs", "sketches", *(kind for kind, _ in plugins.entries("sources"))):
        yield from Path("data", kind).glob("*")


def _files_of(run: Path) -> list[str]:
    """Lines for a run's checkpoints and exported files."""
    files = sorted(path for path in run.rglob("*") if path.suffix in NETWORKS and path.is_file())
    with suppress(OSError):
        return [content_line(path) for path in files]
    return []


def _pictures(file: Path) -> dict[str, str]:
    """What a list names: by pair name the photo's key."""
    pictures = dict[str, str]()
    for found in filter(None, map(_PICTURE.fullmatch, read_dropped(file))):
        with suppress(ValueError, RecursionError):
            pictures[found[1]] = str(json.loads(found[2]))
    return pictures


def _lifted(lines: Iterable[str], pairs: set[str]) -> Iterator[str]:
    """The lines without those of these pairs."""
    for line in lines:
        picture = _PICTURE.fullmatch(line)
        named = [picture[1]] if picture else [pair_of(name) for *_, name in contents_named([line])]
        if not pairs.intersection(named):
            yield line


def _write(path: Path, lines: Iterable[str]) -> None:
    with suppress(OSError):
        write_whole(path, "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape"))


def _sets_with(root: Path, pictures: Mapping[str, str]) -> Iterator[tuple[Path, int]]:
    """Other sets, below data/ and beside this one, with pairs of these names, and how many."""
    keys = {*pictures.values()}
    for real, each in sorted({real_path(path): path for path in _near(root)}.items()):
        count = sum(r.pair in pictures or literal_eval(r.key) in keys for r in _rows(each))
        if count and real != real_path(root):
            yield each, count


def _trained_on(sets: set[Path], pictures: Mapping[str, str], runs: Path) -> dict[Path, str]:
    """The runs whose students learnt from one of the pictures in one of these sets, or started
    from or were taught by such a student, and which of these it was."""
    known = {f.parent: _made_from(f.parent) for f in sorted(runs.rglob("config.yaml"))}

    def learnt(run: Path) -> bool:
        names = [name for name, _ in read_sides(run / RUN_PAIRS)]
        return not names or bool(_among(pictures, names))

    found = {run: "learnt from it" for run, (own, _) in known.items() if sets & own and learnt(run)}
    while more := {
        run: "started from or was taught by such a student"
        for run, (_, parents) in known.items()
        if run not in found and parents & {*map(real_path, found)}
    }:
        found |= more
    return found


def _made_from(run: Path) -> tuple[set[Path], set[Path]]:
    """The set that a run learnt from, and the folders in which the student that it started from,
    or that was its teacher, lies; none by damaged settings."""
    with suppress(OSError, ValueError, yaml.YAMLError, RecursionError, AttributeError):
        trained = yaml.safe_load((run / "config.yaml").read_text())
        roots = [str((trained.get("data") or {}).get("root") or "")]
        with suppress(DistillError):
            if not roots[0] and isinstance(source := settings_of(trained), PhotoSource):
                from distill.data.kinds.chosen import data_source  # PyTorch, unlike pages

                roots = [str(data_source(source).root)]
        named = (trained.get("init"), (trained.get("teacher") or {}).get("path"))
        paths = [real_path(home_path(each)) for each in named if isinstance(each, str)]
        parents = {up for path in paths for up in (path, *path.parents[:2])}
        return {real_path(home_path(each)) for each in roots if each}, parents
    return set(), set()
