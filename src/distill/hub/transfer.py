"""Files to a place and from one: what is there already stays, what differs is never written over.

Killed at any time, it resumes when run again: files travel in batches, and those that say that all
is there come last.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from distill.core.errors import DistillError, counted
from distill.core.files import scratch_folder, sha256
from distill.core.progress import bar
from distill.hub.remotes import Remote

# Of a batch, which is one commit on the Hub, and what a killed command may have to send again.
BATCH, BATCH_BYTES = 500, 10**9  # files; a larger file is one by itself
SUMS = "sha256sums.txt"
_SUM = re.compile(r"([0-9a-f]{64})  ([^\0\r\n\\]+)")


def sums_of(files: Mapping[str, Path]) -> str:
    """The text of sha256sums.txt, as `sha256sum -c` reads it."""
    return "".join(f"{sha256(files[name])}  {name}\n" for name in sorted(files))


def read_sums(text: str, where: str) -> dict[str, str]:
    """SHA-256 by path. Raises DistillError for another file, and for paths that lead elsewhere."""
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        row = _SUM.fullmatch(line)
        # No part is empty, as a path from / begins with one, nor .., nor hidden.
        if row is None or not all(p and not p.startswith(".") for p in row[2].split("/")):
            raise DistillError(f"{where}: {SUMS}: damaged in line {number}; push the set again")
        found[row[2]] = row[1]
    return found


def push(files: Mapping[str, Path], place: Remote, last: Sequence[str], replace: bool) -> int:
    """Write what is not there yet, those named `last` after all others; gives how many.

    Raises DistillError where files of other content are there, unless they are to be replaced.
    """
    there = place.hashes(files)
    known = [name for name in files if name in there]
    with bar(len(known), "file", "comparing", leave=False) as progress:
        different = []
        for name in known:
            if not there[name].fits(files[name]):
                different.append(name)
            progress.update()
    if different and not replace:
        raise DistillError(
            f"repo={place.name}: {_some(different)} there with other content; replace=true "
            "replaces them, another repo= keeps them"
        )
    changed = {*different}
    missing = [name for name in files if name not in there or name in changed]
    sizes = {name: files[name].stat().st_size for name in missing}
    with bar(len(missing), "file", "pushing", leave=False) as progress:
        for names in _batches(sizes, last):
            message = counted(len(names), "file") if len(names) > 1 else names[0]
            place.put({name: files[name] for name in names}, message)
            progress.update(len(names))
    return len(missing)


def pull(
    expected: Mapping[str, str], place: Remote, root: Path, last: Sequence[str], replace: bool
) -> int:
    """Fetch what is not at `root` yet, checked by its SHA-256; gives how many files.

    Raises DistillError where a file of other content is there, unless those are to be replaced,
    and where one comes.
    """
    different = [
        name for name in expected if (root / name).exists() and not _is(root / name, expected[name])
    ]
    if different and not replace:
        raise DistillError(
            f"{root}: {_some(different)} here with other content; replace=true replaces them, "
            "another folder keeps them"
        )
    changed = {*different}
    missing = [name for name in expected if name in changed or not (root / name).exists()]
    there = place.sizes() if missing else {}
    if gone := [name for name in missing if name not in there]:
        raise DistillError(f"repo={place.name}: {_some(gone)} missing there; push the set again")
    for name in last:
        if name in changed:  # killed on the way, what is there is no set
            (root / name).unlink()
    with bar(len(missing), "file", "pulling", leave=False) as progress:
        for names in _batches({name: there[name] for name in missing}, last):
            fetch(names, expected, place, root)
            progress.update(len(names))
    return len(missing)


def fetch(names: Collection[str], expected: Mapping[str, str], place: Remote, root: Path) -> None:
    """A batch, by way of a folder beside `root`: none is there under its name until checked."""
    with scratch_folder(root.with_name(f"{root.name}.pulled")) as scratch:
        place.fetch(names, scratch)
        for name in names:
            if not _is(scratch / name, expected[name]):
                raise DistillError(
                    f"repo={place.name}: {name}: not what {SUMS} says; push the set again"
                )
        for name in names:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(scratch / name, root / name)


def _is(path: Path, digest: str) -> bool:
    return path.is_file() and sha256(path) == digest


def _batches(sizes: Mapping[str, int], last: Sequence[str]) -> Iterator[Sequence[str]]:
    """These files, of so many bytes each; those named last by themselves, in their order, when all
    others are there."""
    batch, size = list[str](), 0
    for name, more in sizes.items():
        if name in last:
            continue
        if batch and (len(batch) == BATCH or size + more > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(name)
        size += more
    if batch:
        yield batch
    if closing := [name for name in last if name in sizes]:
        yield closing


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1:,} more are" if len(names) > 1 else " is"
    return f"{names[0]}{more}"
