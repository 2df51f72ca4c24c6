"""Pictures that were taken down: what still holds them is named, and not published unasked.

ROOT/takedown.txt    of a set, and RUN/takedown.txt of a run that learnt from it: every picture,
                     what is known by its content, the places that held them; the newest last
ROOT/published.txt   where the set, or a run's student, was pushed to
"""

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from distill.config.registry import settings_of
from distill.config.settings.training import PhotoSource
from distill.core import plugins
from distill.core.errors import DistillError, counted
from distill.core.files import cache_folder, home_path, real_path, write_whole
from distill.core.licence_terms import TAKEN_DOWN, Licence, Terms
from distill.data.dropped import content_line, contents_named, copies
from distill.data.manifest import KEPT, manifest_at, metadata_folder
from distill.data.photo_table import PhotoRow, names_learnt, pair_of, read_dropped, read_rows
from distill.data.photos import Photo

TAKEDOWN, PUBLISHED = "takedown.txt", "published.txt"
NETWORKS = {".ckpt", ".onnx", ".safetensors"}
SHOWN = 12  # lines
_PICTURE = re.compile(r"picture (\S+) (.+)")


def record_takedown(
    root: Path,
    pictures: Mapping[str, str],
    runs: Path = Path("runs"),
    metadata: Path | None = None,
    contents: Sequence[str] = (),
    restored: Iterable[str] = (),
) -> None:
    """Find and say what still holds these `pictures`, by pair name the photo's key; nothing of no
    pictures. The folder `metadata` of the set's own files, None: `root`, keeps what was found.

    `contents` are lines for the pictures' files (`content_line`), `restored` the pair names of
    pictures that may be used again. Raises OSError where the set's own list cannot be written.
    """
    record = (metadata or root) / TAKEDOWN
    if back := {*restored} & _pictures(record).keys():
        for file in (record, *runs.rglob(TAKEDOWN)):
            with suppress(OSError):
                _write(file, (line for line in read_dropped(file) if not back & _pairs_in(line)))
    if not pictures:
        return
    lineages = {c.parent: [*_lineage(c.parent)] for c in sorted(runs.rglob("config.yaml"))}
    trained_on = {each for line in lineages.values() for _, roots in line for each in roots}
    sets = _other_sets(root, trained_on, pictures, contents)
    places = [f"set    {s}: {counted(len(n), 'pair')} of these pictures" for s, n in sets.items()]
    sets[root] = {*pictures, *map(os.path.basename, pictures.values())}
    trained = _trained_on({real_path(each): names for each, names in sets.items()}, lineages)
    for run, why in trained.items():
        exported = ", its exports too" if (run / "export").is_dir() else ""
        places.append(f"run    {run}: its student {why}{exported}; its previews may show them")
    for each in (*sets, *trained):
        pushed = read_dropped(each / PUBLISHED)
        places += [f"public {where}: pushed from {each}" for where in pushed]
    kept = [path for path in cache_folder().rglob("*.png") if pair_of(path.name) in pictures]
    if (page := Path("data/curation") / root.name).is_dir():
        kept.append(page)
    places += [f"copy   {path}" for path in kept]
    head = f"{time.strftime('%Y-%m-%d %H:%M')} left out {counted(len(pictures), 'picture')}; "
    head += f"places known to hold them: {len(places)}"
    named = [f"picture {p} {json.dumps(key, ensure_ascii=False)}" for p, key in pictures.items()]
    networks = list[str]()
    with suppress(OSError):
        networks += [content_line(file.local) for run in trained for file in _networks(run)]
    lines = [head, *named, *contents, *networks, *places]
    _write(record, [*read_dropped(record), *lines])
    for file in (run / TAKEDOWN for run in trained):
        with suppress(OSError):  # a run may lie where nothing can be written
            _write(file, [*read_dropped(file), *lines])
    shown = "\n".join(places[:SHOWN])
    print(f"{head}; nothing of it is deleted, {record} names all\n{shown}".rstrip())


def _other_sets(
    root: Path, trained_on: set[Path], pictures: Mapping[str, str], contents: Sequence[str]
) -> dict[Path, set[str]]:
    """The pairs of these pictures, by name or content, in each set but `root` that lies near it, or
    that a run learnt from, where there are any."""
    keys, near = {*pictures.values()}, {real_path(path): path for path in _near(root)}
    pairs = dict[Path, set[str]]()
    for real, each in sorted(({path: path for path in trained_on} | near).items()):
        if real != real_path(root):
            pairs[each] = {pair_of(file.key) for file in copies(_files(each), contents)}
            for row in _rows(each):
                if row.pair in pictures or row.photo in keys:
                    pairs[each].add(row.pair)
    return {each: names for each, names in pairs.items() if names}


def with_takedown(terms: Terms, path: Path) -> Terms:
    """The terms of a network's file beside a link for pictures that were taken down since its run
    learnt from them, or one did that it started from or was taught by; the file may be a copy."""
    pairs = set[str]()
    for run, roots in _lineage(path.absolute().parent):
        pairs |= _pictures(run / TAKEDOWN).keys()
        for root in roots:
            pairs = pairs.union(*taken_down(root, names_learnt(run) or None).values())
    runs = (file for depth in ("*", "*/*") for file in Path("runs").glob(f"{depth}/{TAKEDOWN}"))
    for record in () if pairs else (*_records(path.parent), *runs):
        if not pairs and copies([Photo(path, path.name)], read_dropped(record)):
            pairs |= _pictures(record).keys()
    return _beside(terms, len(pairs), "that it learnt from")


def set_with_takedown(terms: Terms, root: Path) -> Terms:
    """The same for the pictures that the set at `root` holds."""
    pairs = set[str]().union(*taken_down(root).values())
    return _beside(terms, len(pairs), "that it holds")


def learnt_before(run: Path) -> dict[str, str]:
    """The pictures that a run learnt from before its set left them out: by pair name the key."""
    return _among(_pictures(run / TAKEDOWN), names_learnt(run))


def note_published(path: Path, where: str, runs: Path = Path("runs")) -> None:
    """Remember where a set, or a run's student, was pushed to: in its folder; of a student's file
    in that of the run that it lies in, or that has the same file."""
    folder = path if path.is_dir() else next(_lineage(path.absolute().parent), (None,))[0]
    if folder is None:
        line, every = content_line(path), sorted(runs.rglob("config.yaml"))
        folder = next((c.parent for c in every if copies(_networks(c.parent), [line])), None)
    if folder is not None:
        with suppress(OSError):
            _write(folder / PUBLISHED, [*read_dropped(folder / PUBLISHED), where])


def _beside(terms: Terms, count: int, whose: str) -> Terms:
    text = f"taken down: {counted(count, 'picture')} {whose}"
    accepted = any(e.stated and e.of == TAKEN_DOWN and e.text.startswith(text) for e in terms.chain)
    if not count or accepted:
        return terms
    return terms.beside(Licence(TAKEN_DOWN, commercial="no", text=text))


def taken_down(root: Path, learnt: Set[str] | None = None) -> dict[Path, set[str]]:
    """The pairs of pictures taken down that the set at `root` holds, by the set that they were
    taken down of; with the names of the pairs that a run `learnt`, those among them."""
    held = dict[Path, set[str]]()
    for record in _records(root):
        pictures, lines = _pictures(record), read_dropped(record)
        of = record.parents[1] if record.parent.name == KEPT else record.parent
        pairs, ours = set[str](), real_path(of) == real_path(root)
        if learnt is not None and (ours or not root.exists()):
            pairs |= _among(pictures, learnt).keys()
        if not ours:
            same = copies(_files(root), lines).items()
            pairs |= {pair_of(name) for file, name in same if learnt is None or file.key in learnt}
            # Of the same photos, by another teacher or of another size.
            with suppress(DistillError):
                if (photos := _photos_of(of)) and photos == _photos_of(root):
                    there = _among(pictures, (row.pair for row in _rows(root)))
                    pairs |= {*(there if learnt is None else _among(there, learnt))}
        if pairs:
            held[of] = pairs
    return held


def _among(pictures: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Those of the pictures of which there is a pair of these names; pairs of one's own are called
    by their photo's file name."""
    there = {each for name in names for each in (name, pair_of(name))}
    return {
        p: key for p, key in pictures.items() if not there.isdisjoint((p, os.path.basename(key)))
    }


def _rows(root: Path) -> list[PhotoRow]:
    """The photos of which the set has pairs; none of a damaged list."""
    with suppress(DistillError):
        return [row for row in read_rows(metadata_folder(root)).values() if row.side]
    return []


def _photos_of(root: Path) -> str:
    return str((manifest_at(metadata_folder(root)) or {}).get("photos", ""))


def _records(root: Path) -> list[Path]:
    """The lists of this set and of others, below data/ and beside it."""
    files = (each / name / TAKEDOWN for each in (root, *_near(root)) for name in ("", KEPT))
    return [*{real_path(file): file for file in files if file.is_file()}.values()]


def _near(root: Path) -> Iterator[Path]:
    """What lies beside a set, and below data/ where sets usually are."""
    yield from root.parent.glob("*")
    for kind in ("pairs", "sketches", *(kind for kind, _ in plugins.entries("sources"))):
        yield from Path("data", kind).glob("*")


def _files(root: Path) -> Iterator[Photo]:
    return (Photo(Path(top, name), name) for top, _, names in os.walk(root) for name in names)


def _networks(run: Path) -> list[Photo]:
    """A run's checkpoints and exported files."""
    files = sorted(path for path in run.rglob("*") if path.suffix in NETWORKS and path.is_file())
    return [Photo(path, path.name) for path in files]


def _pictures(record: Path) -> dict[str, str]:
    """What a list names: by pair name the photo's key."""
    pictures = dict[str, str]()
    for row in filter(None, map(_PICTURE.fullmatch, read_dropped(record))):
        with suppress(ValueError, RecursionError):
            pictures[row[1]] = str(json.loads(row[2]))
    return pictures


def _pairs_in(line: str) -> set[str]:
    """The pair that a line names, by its photo's name or its content."""
    picture = _PICTURE.fullmatch(line)
    return {picture[1]} if picture else {pair_of(name) for _, name in contents_named([line])}


def _write(path: Path, lines: Iterable[str]) -> None:
    """Each line once. Raises OSError."""
    write_whole(path, "".join(f"{line}\n" for line in dict.fromkeys(lines)))


def _trained_on(
    sets: Mapping[Path, set[str]], lineages: Mapping[Path, Iterable[tuple[Path, set[Path]]]]
) -> dict[Path, str]:
    """The runs whose students learnt from one of these pairs of a set, or started from or were
    taught by such a student, and which of these it was."""
    reasons = dict[Path, str]()
    for folder, lineage in lineages.items():
        for run, roots in lineage:
            pairs = set[str]().union(*(sets[root] for root in roots & sets.keys()))
            learnt = {each for name in names_learnt(run) for each in (name, pair_of(name))}
            if pairs and (not learnt or pairs & learnt):
                heir = "started from or was taught by such a student"
                reasons.setdefault(folder, "learnt from it" if run == folder else heir)
    return reasons


def _lineage(path: Path, seen: frozenset[Path] = frozenset()) -> Iterator[tuple[Path, set[Path]]]:
    """The run that a path lies in, and those that its student started from or was taught by, each
    with the sets that it learnt from; of damaged settings nothing is known."""
    runs = (up for up in (path, *path.parents[:3]) if (up / "config.yaml").is_file())
    if (run := next(runs, None)) is None or real_path(run) in seen:
        return
    roots, named = list[str](), list[Any]()
    with suppress(OSError, ValueError, yaml.YAMLError, RecursionError, AttributeError):
        trained = yaml.safe_load((run / "config.yaml").read_text())
        named = [trained.get("init"), (trained.get("teacher") or {}).get("path")]
        data = trained.get("data") or {}
        roots = [str(data.get("root") or "")]
        domains = [str(data[side]) for side in ("a", "b") if data.get(side)]
        roots += [*domains, *map(os.path.dirname, map(os.path.abspath, domains))]
        with suppress(DistillError):
            if not roots[0] and isinstance(source := settings_of(trained), PhotoSource):
                from distill.data.kinds.registry import data_source  # PyTorch, unlike pages

                roots = [str(data_source(source).root)]
    yield run, {real_path(home_path(each)) for each in roots if each}
    for each in named:
        if isinstance(each, str):
            yield from _lineage(real_path(home_path(each)), seen | {real_path(run)})
