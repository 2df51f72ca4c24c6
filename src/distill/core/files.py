"""Files: written whole or not at all, their hashes, and the folder of the cache."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from distill.core.errors import FULL


def real_path(path: Path) -> Path:
    """The path without links and dots; one of a link that leads to itself as it is named.

    Path.resolve raises there; reading the file says what is wrong.
    """
    return Path(os.path.realpath(path))


@contextmanager
def atomic_write(target: Path) -> Iterator[Path]:
    """A temporary path beside `target` that replaces it at the end, or vanishes on an error.

    A full or failing disk is told by an OSError that names the target.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        mask = os.umask(0)  # there is no other way to ask for it
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        os.replace(temporary, target)
    except OSError as error:
        if error.filename is None and error.errno in (*FULL, errno.EIO):
            error.filename = str(target)  # a write that fails names no file
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(target: Path, content: str | bytes | memoryview) -> None:
    """Replace a file by this text, as UTF-8, or these bytes, with `atomic_write`."""
    with atomic_write(target) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def write_json(target: Path, values: Any) -> None:
    """Replace a file by plain values as indented JSON, with `atomic_write`."""
    write_whole(target, json.dumps(values, indent=2) + "\n")


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def git_blob_id(path: Path) -> str:
    """The id git gives a file's content: SHA-1 of `blob SIZE\\0` and the content."""
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: digest).hexdigest()


def cache_folder() -> Path:
    """`$DISTILL_CACHE`, or `distill` in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("DISTILL_CACHE") or Path(base) / "distill").expanduser()
