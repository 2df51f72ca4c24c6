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
from typing import Any, NamedTuple

import yaml

from distill.config.registry import settings_of
from distill.config.settings.training import PhotoSource
from distill.core import plugins
from distill.core.errors import DistillError, counted
from distill.core.files import cache_folder, home_path, real_path, sha256, write_whole
from distill.core.terms import TAKEN_DOWN, Licence, Terms
from distill.data.manifest import manifest_at
from distill.data.photo_table import RUN_PAIRS, pair_of, read_rows, read_sides
from distill.data.set_files import KEPT

TAKEDOWN, PUBLISHED = "takedown.txt", "published.txt"
NETWORKS = {".ckpt", ".onnx", ".safetensors"}
SHOWN = 12  # lines
_PICTURE = re.compile(r"picture (\S+) (.+)")
_CONTENT = re.compile(r"sha256:([0-9a-f]{64}) (\d{1,18}) (.+)")

Content = tuple[int, str]  # bytes and SHA-256 of a file


class Record(NamedTuple):
    """What a takedown.txt names: pictures, by pair name the photo's key, and files by content."""

    pictures: dict[str, str]
    contents: dict[Content, str]


def report_takedown(
    root: Path,
    pictures: Mapping[str, str],
    runs: Path,
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
    if back := {*restored} & _read(folder / TAKEDOWN).pictures.keys():
        for file in (folder / TAKEDOWN, *runs.rglob(TAKEDOWN)):
            _write(file, _lifted(_lines(file), back))
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
        places += [f"public {where}: pushed from {each}" for where in _lines(each / PUBLISHED)]
    kept = [path for path in cache_folder().rglob("*.png") if pair_of(path.name) in pictures]
    page = [path for path in (Path("data/curation") / root.name,) if path.is_dir()]
    places += [f"copy   {path}" for path in (*kept, *page)]
    many = counted(len(pictures), "picture")
    head = f"{time.strftime('%Y-%m-%d %H:%M')} left out {many}; places known to hold them: "
    head += str(len(places))
    named = [f"picture {p} {json.dumps(key, ensure_ascii=False)}" for p, key in pictures.items()]
    made = [line for run in trained for line in _files_of(run)]
    for each in (folder, *trained):
        _write(each / TAKEDOWN, [*_lines(each / TAKEDOWN), head, *named, *contents, *made, *places])
    shown = "\n".join(places[:SHOWN])
    print(f"{head}; nothing of it is deleted, {folder / TAKEDOWN} names all\n{shown}".rstrip())


def content_line(path: Path) -> str:
    """What a file is known by wherever it is copied to, and whatever it is called there."""
    return f"sha256:{sha256(path)} {path.stat().st_size} {path.name}"


def with_takedown(terms: Terms, path: Path) -> Terms:
    """The terms of a network's file beside a link for pictures that were taken down since its run
    learnt from them; the file may be a copy."""
    run = next((up for up in path.absolute().parents[:4] if (up / "config.yaml").is_file()), None)
    count = len(_of_run(run, set()) if run else {}) or _of_copy(path)
    return _beside(terms, count, "that it learnt from")


def set_with_takedown(terms: Terms, root: Path) -> Terms:
    """The same for the pictures that the set at `root` holds."""
    return _beside(terms, len(_held(root, None)), "that it holds")


def note_published(folder: Path, where: str) -> None:
    """Remember where what lies in this folder was pushed to."""
    _write(folder / PUBLISHED, dict.fromkeys([*_lines(folder / PUBLISHED), where]))


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
    found, parents = _read(run / TAKEDOWN).pictures, set[Path]()
    with suppress(OSError, ValueError, yaml.YAMLError, RecursionError, AttributeError):
        roots, parents = _made_from(yaml.safe_load((run / "config.yaml").read_text()))
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
        record = _read(file)
        sizes = {size for size, _ in record.contents}
        with suppress(OSError):
            if path.stat().st_size in sizes and _content(path) in record.contents:
                return len(record.pictures)
    return 0


def _held(root: Path, learnt: set[str] | None) -> dict[str, str]:
    """The pictures taken down, of this set or another one, that the set at `root` holds; with the
    names of the pairs that a run `learnt`, those among them."""
    found = dict[str, str]()
    for file in _records(root):
        record, of = _read(file), file.parent.parent if file.parent.name == KEPT else file.parent
        if learnt is not None and (real_path(of) == real_path(root) or not root.exists()):
            found |= _among(record.pictures, learnt)
        if real_path(of) == real_path(root):
            continue
        for name, here in _same_files(root, record.contents):
            if learnt is None or here in learnt:
                found[pair_of(name)] = record.pictures.get(pair_of(name), name)
        with suppress(DistillError):  # of the same photos, by another teacher or of another size
            if (photos := _photos_of(of)) and photos == _photos_of(root):
                there = _among(record.pictures, _rows(root))
                found |= there if learnt is None else _among(there, learnt)
    return found


def _among(pictures: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Those of the pictures of which there is a pair of these names; pairs of one's own are called
    by their photo's file name."""
    there = {each for name in names for each in (name, pair_of(name))}
    return {
        p: key for p, key in pictures.items() if not there.isdisjoint((p, os.path.basename(key)))
    }


def _same_files(root: Path, contents: Mapping[Content, str]) -> Iterator[tuple[str, str]]:
    """Files below `root` of these contents: the name in the record, and the one there."""
    sizes = {size for size, _ in contents}
    for top, _, names in os.walk(root) if sizes else ():
        for name in names:
            path = Path(top, name)
            with suppress(OSError):
                if path.stat().st_size in sizes and (of := contents.get(_content(path))):
                    yield of, name


def _rows(root: Path) -> set[str]:
    rows = {**read_rows(root), **read_rows(root / KEPT)}
    return {pair for pair, row in rows.items() if row.side}


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


def _content(path: Path) -> Content:
    return path.stat().st_size, sha256(path)


def _files_of(run: Path) -> list[str]:
    """Lines for a run's checkpoints and exported files."""
    files = sorted(path for path in run.rglob("*") if path.suffix in NETWORKS and path.is_file())
    with suppress(OSError):
        return [content_line(path) for path in files]
    return []


def _read(path: Path) -> Record:
    """What a list names; lines of another form, as places, are left out."""
    lines = _lines(path)
    pictures = dict[str, str]()
    for found in filter(None, map(_PICTURE.fullmatch, lines)):
        with suppress(ValueError, RecursionError):
            pictures[found[1]] = str(json.loads(found[2]))
    contents = filter(None, map(_CONTENT.fullmatch, lines))
    return Record(pictures, {(int(each[2]), each[1]): each[3] for each in contents})


def _lifted(lines: Iterable[str], pairs: set[str]) -> Iterator[str]:
    """The lines without those of these pairs."""
    for line in lines:
        picture, content = _PICTURE.fullmatch(line), _CONTENT.fullmatch(line)
        if not (picture and picture[1] in pairs) and not (content and pair_of(content[3]) in pairs):
            yield line


def _write(path: Path, lines: Iterable[str]) -> None:
    with suppress(OSError):
        write_whole(path, "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape"))


def _lines(path: Path) -> list[str]:
    with suppress(OSError):
        text = path.read_bytes().decode(errors="surrogateescape")
        return [line.removesuffix("\r") for line in text.split("\n") if line]
    return []


def _sets_with(root: Path, pictures: Mapping[str, str]) -> Iterator[tuple[Path, int]]:
    """Other sets, below data/ and beside this one, with pairs of these names, and how many."""
    keys = {*pictures.values()}
    for real, each in sorted({real_path(path): path for path in _near(root)}.items()):
        for files in (each, each / KEPT):
            with suppress(DistillError):  # a damaged list
                rows = [row for row in read_rows(files).values() if row.side]
                count = sum(r.pair in pictures or literal_eval(r.key) in keys for r in rows)
                if count and real != real_path(root):
                    yield each, count


def _trained_on(sets: set[Path], pictures: Mapping[str, str], runs: Path) -> dict[Path, str]:
    """The runs whose students learnt from one of the pictures in one of these sets, or started
    from or were taught by such a student, and which of these it was."""
    known = dict[Path, tuple[set[Path], set[Path]]]()
    for path in sorted(runs.rglob("config.yaml")):
        with suppress(OSError, ValueError, yaml.YAMLError, RecursionError, AttributeError):
            known[path.parent] = _made_from(yaml.safe_load(path.read_text()))

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


def _made_from(trained: dict[str, Any]) -> tuple[set[Path], set[Path]]:
    """The set that a run learnt from, and the folders in which the student that it started from,
    or that was its teacher, lies."""
    roots = [str((trained.get("data") or {}).get("root") or "")]
    with suppress(DistillError):
        if not roots[0] and isinstance(source := settings_of(trained), PhotoSource):
            from distill.data.kinds.chosen import data_source  # PyTorch, which pages do without

            roots = [str(data_source(source).root)]
    named = (trained.get("init"), (trained.get("teacher") or {}).get("path"))
    paths = [real_path(home_path(each)) for each in named if isinstance(each, str)]
    parents = {up for path in paths for up in (path, *path.parents[:2])}
    return {real_path(home_path(each)) for each in roots if each}, parents
