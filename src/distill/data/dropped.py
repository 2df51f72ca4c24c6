"""What is left out of a set for good: ROOT/dropped.txt, one picture a line.

A line is a photo's path below its folder, its bare file name, a folder of photos (`anna/`), the
name of a PNG of the set, or `sha256:HASH BYTES NAME`, which keeps copies out too, whatever they are
called. Lists add up; what restore=FILE names is let in again.
"""

from __future__ import annotations

import hashlib
import re
from ast import literal_eval
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from distill.core.files import sha256
from distill.data.decode import BadPhoto
from distill.data.photo_table import PhotoRow, pair_of
from distill.data.photos import Photo

_CONTENT = re.compile(r"sha256:([0-9a-f]{64}) (\d{1,18}) (.+)")
_NO_LINE = re.compile(r"[\r\n]")


class DropList(NamedTuple):
    """The `lines` to keep, the pair names that they mean, those of them that are `new` now, and
    the lines just given that name nothing; `restored` are pair names that are let in again."""

    lines: list[str]
    pairs: set[str]
    new: set[str]
    unknown: list[str]
    restored: set[str]


def drop_list(
    kept: Sequence[str],
    drop: Sequence[str],
    restore: Sequence[str],
    photos: Sequence[Photo],
    rows: Mapping[str, PhotoRow] = MappingProxyType({}),
    pairs: Iterable[str] = (),
) -> DropList:
    """The `kept` lines of a set, without what `restore` names and `drop` does not, `drop` added.

    `photos` are those there now, `rows` what the set knows of photos, `pairs` its pairs. What
    `drop` names is read once, for its content; others where they have as many bytes. Of pairs that
    are left out for other reasons the content is not kept: of two copies it may leave out one.
    """
    meanings = _meanings({*kept, *drop, *restore}, photos, rows, {*pairs})
    restore = [line for line in restore if line not in drop]  # of both, out is meant
    restored = _named(restore, meanings) - _named(drop, meanings)
    lines = list(dict.fromkeys([*kept, *drop]))
    if restore:
        lines = _without_restored(lines, restore, restored, photos, meanings)
    out = _named(lines, meanings)
    dropped = _named(drop, meanings) & out
    lines += _content_lines([photo for photo in photos if photo.pair_name in dropped], lines)
    alike = copies([photo for photo in photos if photo.pair_name not in out], lines)
    lines += _content_lines(alike, lines)
    out |= {photo.pair_name for photo in alike}
    before = _named(kept, meanings)
    before |= {Photo(Path(), name).pair_name for *_, name in contents_named(kept)}
    unknown = [line for line in (*drop, *restore) if not meanings[line]]
    return DropList(lines, out, out - before, unknown, restored - out)


def _without_restored(
    lines: Sequence[str],
    restore: Sequence[str],
    restored: set[str],
    photos: Sequence[Photo],
    meanings: dict[str, set[str]],
) -> list[str]:
    """The lines that stay where the pairs `restored` are let in again.

    Of a bare name that several photos have, the others stay out by their paths, whose meanings are
    added.
    """
    contents = {each[:2] for each in contents_named(lines) if each[2] in restore}
    again = [photo for photo in photos if photo.pair_name in restored]
    contents |= {content for photo in again if (content := _content(photo))}
    shared = [line for line in lines if meanings[line] & restored]
    others = _named(shared, meanings) - restored
    paths = {photo.key: {photo.pair_name} for photo in photos if photo.pair_name in others}
    meanings |= paths
    stay = [
        line
        for line in lines
        if line not in restore
        and not meanings[line] & restored
        and not {each[:2] for each in contents_named([line])} & contents
    ]
    return stay + [path for path in paths if path not in stay]


def _named(lines: Iterable[str], meanings: Mapping[str, set[str]]) -> set[str]:
    """The pair names that any of the lines means."""
    return {pair for line in lines for pair in meanings[line]}


def copies(photos: Iterable[Photo], lines: Sequence[str]) -> list[Photo]:
    """The photos whose content a line names, whatever they are called."""
    known = {each[:2] for each in contents_named(lines)}
    sizes = {-1, *(size for size, _ in known)}
    return [p for p in photos if known and _size(p) in sizes and _content(p) in known]


def _content_lines(photos: Iterable[Photo], lines: Sequence[str]) -> list[str]:
    """Lines for the content of these photos, but for those whose name has one; none for a file
    that cannot be read."""
    there = {name for *_, name in contents_named(lines)}
    names = {_NO_LINE.sub("?", photo.key): photo for photo in photos}
    contents = ((name, _content(photo)) for name, photo in names.items() if name not in there)
    return [f"sha256:{of[1]} {of[0]} {name}" for name, of in contents if of]


def content_line(path: Path) -> str:
    """What a file is known by wherever it is copied to, and whatever it is called there."""
    return f"sha256:{sha256(path)} {path.stat().st_size} {path.name}"


def contents_named(lines: Iterable[str]) -> list[tuple[int, str, str]]:
    """Bytes, hash and name in those lines that name a content."""
    matches = map(_CONTENT.fullmatch, lines)
    return [(int(each[2]), each[1], each[3]) for each in matches if each]


def _size(photo: Photo) -> int | None:
    """In bytes; -1 of one at an address whose store does not say."""
    if not isinstance(photo.path, Path):
        return photo.path.size
    with suppress(OSError):
        return photo.path.stat().st_size
    return None


def _content(photo: Photo) -> tuple[int, str] | None:
    with suppress(OSError, BadPhoto):
        if not isinstance(photo.path, Path):
            content = photo.path.read()
            return len(content), hashlib.sha256(content).hexdigest()
        if photo.path.is_file():
            return photo.path.stat().st_size, sha256(photo.path)
    return None


def _meanings(
    lines: set[str], photos: Sequence[Photo], rows: Mapping[str, PhotoRow], pairs: set[str]
) -> dict[str, set[str]]:
    """The pair names that each line means: of photos, of those that the set knows and whose file
    is gone, and of pairs."""
    meanings: dict[str, set[str]] = {line: set() for line in lines}
    if not lines:
        return meanings
    known = {photo.pair_name: (photo.key, photo.folder) for photo in photos}
    gone = rows.keys() - known.keys()
    known |= {pair: (literal_eval(rows[pair].key), rows[pair].folder) for pair in gone}
    folders = [line for line in lines if line.endswith("/")]
    for pair, (key, folder) in known.items():
        inside = key.removeprefix(f"{folder}/") if folder else key
        above = {line for line in folders if key.startswith(line) or inside.startswith(line)}
        for line in above | ({key, inside, inside.rpartition("/")[2]} & meanings.keys()):
            meanings[line].add(pair)
    for line in lines:
        if line.endswith(".png") and (pair := pair_of(line)) in known.keys() | pairs:
            meanings[line].add(pair)
    return meanings
