"""What was measured of files, kept in the cache as rows: measured again when a file changes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np

from distill.core.files import atomic_write, cache_folder


def cache_file(kind: str, source: str) -> Path:
    """Where rows of a kind are kept of the pictures that `source` names."""
    digest = hashlib.sha256(source.encode(errors="surrogateescape")).hexdigest()
    return cache_folder() / kind / f"{digest[:16]}.npy"


def load_rows(file: Path, kind: np.dtype) -> dict[bytes, np.void]:
    """The rows that are kept, by their field `id`; none where the file is missing, damaged or of
    an older version."""
    with suppress(OSError, ValueError, EOFError):
        rows = np.load(file)
        if rows.dtype == kind:
            return {row["id"].tobytes(): row for row in rows}
    return {}


def save_rows(file: Path, rows: np.ndarray) -> None:
    """Raises OSError."""
    with atomic_write(file) as temporary, temporary.open("wb") as out:
        np.save(out, rows)


def row_id(text: str) -> bytes:
    """16 bytes that stand for a text."""
    return hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=16).digest()


def id_of_files(paths: Iterable[Path], how: str = "") -> bytes:
    """16 bytes that change when one of the files does, or how they are measured."""
    for path in paths:
        with suppress(OSError):
            found = path.stat()
            how += f"\0{path}\0{found.st_size}\0{found.st_mtime_ns}"
    return row_id(how)
