"""What is left out of a set for good: ROOT/dropped.txt, one picture a line.

A line is a photo's path below its folder, its bare file name, a folder of photos (`anna/`), the
name of a PNG of the set, or `sha256:HASH BYTES NAME`, which keeps copies out too, whatever they are
called. Lists add up; what restore=FILE names is let in again.
"""

import hashlib
import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from distill.core.files import sha256
from distill.data.decode import BadPhoto
from distill.data.photo_table import PhotoRow, pair_of
from distill.data.photos import Photo, PhotoFile

_CONTENT = re.compile(r"sha256:([0-9a-f]{64}) (\d{1,18}) (.+)")
_NO_LINE = re.compile(r"[\r\n]")
Content = tuple[int, str]  # of a file: its bytes and their SHA-256


class DropList(NamedTuple):
    """The `lines` to keep, the pair names that they mean, of those that are `new` now the photos'
    keys, and the lines just given that name nothing; `restored` are pair names that are let in
    again."""

    lines: list[str]
    pairs: set[str]
    new: dict[str, str]
    unknown: list[str]
    restored: set[str]


def drop_list(
    kept: Sequence[str],
    drop: Sequence[str],
    restore: Sequence[str],
    photos: Sequence[Photo],
    rows: Mapping[str, PhotoRow] = MappingProxyType({}),
    pairs: Collection[str] = (),
) -> DropList:
    """The `kept` lines of a set, without what `restore` names and `drop` does not, `drop` added.

    `photos` are those there now, `rows` what the set knows of photos, `pairs` its pairs. What
    `drop` names is read once, for its content; others where they have as many bytes. Of pairs that
    are left out for other reasons the content is not kept: of two copies it may leave out one.
    """
    if not (kept or drop or restore):
        return DropList([], set(), {}, [], set())
    known = {photo.pair_name: (photo.key, photo.folder) for photo in photos}
    gone = rows.keys() - known.keys()  # their files are
    known |= {pair: (rows[pair].photo, rows[pair].folder) for pair in gone}
    meanings = _meanings((*kept, *drop, *restore), known, pairs)

    def named(lines: Iterable[str]) -> set[str]:
        return {pair for line in lines for pair in meanings[line]}

    lines = list(dict.fromkeys([*kept, *drop]))
    restore = [line for line in restore if line not in drop]  # of both, out is meant
    restored = named(restore) - named(drop)
    if restore:
        lines, meanings = _readmitted(lines, restore, restored, meanings, photos)
    out = named(lines)
    dropped = named(drop) & out
    lines += _content_lines([photo for photo in photos if photo.pair_name in dropped], lines)
    alike = copies([photo for photo in photos if photo.pair_name not in out], lines)
    lines += _content_lines(alike, lines)
    out |= {photo.pair_name for photo in alike}
    before = named(kept) | {Photo(Path(), name).pair_name for _, name in contents_named(kept)}
    unknown = [line for line in (*drop, *restore) if not meanings[line]]
    new = {pair: known[pair][0] if pair in known else pair for pair in sorted(out - before)}
    return DropList(lines, out, new, unknown, restored - out)


def _readmitted(
    lines: Sequence[str],
    restore: Collection[str],
    restored: Collection[str],
    meanings: Mapping[str, set[str]],
    photos: Sequence[Photo],
) -> tuple[list[str], dict[str, set[str]]]:
    """The lines without those that leave out a `restored` pair, and all meanings. Of a bare name
    that several photos have the others stay out, by lines of their paths."""
    again = {content for content, name in contents_named(lines) if name in restore}
    photos_again = (p.path for p in photos if p.pair_name in restored)
    again |= {content for path in photos_again if (content := _content(path))}
    both = [line for line in lines if not meanings[line].isdisjoint(restored)]
    others = {pair for line in both for pair in meanings[line]} - {*restored}
    paths = {photo.key: {photo.pair_name} for photo in photos if photo.pair_name in others}
    meanings = {**meanings, **paths}
    kept = [
        line
        for line in lines
        if line not in restore
        and meanings[line].isdisjoint(restored)
        and again.isdisjoint(content for content, _ in contents_named([line]))
    ]
    return kept + [path for path in paths if path not in kept], meanings


def _meanings(
    lines: Iterable[str], known: Mapping[str, tuple[str, str]], pairs: Collection[str]
) -> dict[str, set[str]]:
    """The pair names that each line means: of photos, `known` by key and folder, and of pairs."""
    meanings: dict[str, set[str]] = {line: set() for line in lines}
    folders = [line for line in meanings if line.endswith("/")]
    for pair, (key, folder) in known.items():
        inside = key.removeprefix(f"{folder}/") if folder else key
        above = {line for line in folders if key.startswith(line) or inside.startswith(line)}
        for line in above | ({key, inside, inside.rpartition("/")[2]} & meanings.keys()):
            meanings[line].add(pair)
    for line in meanings:
        if line.endswith(".png") and ((pair := pair_of(line)) in known or pair in pairs):
            meanings[line].add(pair)
    return meanings


def copies(photos: Iterable[Photo], lines: Iterable[str]) -> dict[Photo, str]:
    """The photos whose content a line names, whatever they are called, and the name in that line.

    Read are those of its size alone."""
    names = dict[Content | None, str](contents_named(lines))
    sizes = {-1, *(content[0] for content in names if content)}
    contents = ((photo, _content(photo.path, sizes)) for photo in photos) if names else ()
    return {photo: names[content] for photo, content in contents if content in names}


def _content_lines(photos: Iterable[Photo], lines: Iterable[str]) -> list[str]:
    """Lines for the content of these photos, but for those whose name has one; none for a file
    that cannot be read."""
    there = {name for _, name in contents_named(lines)}
    names = {_NO_LINE.sub("?", photo.key): photo for photo in photos}
    contents = {name: _content(photo.path) for name, photo in names.items() if name not in there}
    return [f"sha256:{of[1]} {of[0]} {name}" for name, of in contents.items() if of]


def content_line(path: Path) -> str:
    """What a file is known by wherever it is copied to, and whatever it is called there."""
    return f"sha256:{sha256(path)} {path.stat().st_size} {path.name}"


def contents_named(lines: Iterable[str]) -> list[tuple[Content, str]]:
    """Content and name in those lines that name a content."""
    matches = filter(None, map(_CONTENT.fullmatch, lines))
    return [((int(each[2]), each[1]), each[3]) for each in matches]


def _content(path: PhotoFile, sizes: Container[int] | None = None) -> Content | None:
    """None of a file that cannot be read, or is of none of these `sizes`; an address whose store
    does not say one has -1."""
    with suppress(OSError, BadPhoto):
        size = path.stat().st_size if isinstance(path, Path) else path.size
        if sizes is not None and size not in sizes:
            return None
        if not isinstance(path, Path):
            content = path.read()
            return len(content), hashlib.sha256(content).hexdigest()
        if path.is_file():
            return size, sha256(path)
    return None
