"""Files: written whole or not at all, their hashes, and the folder of the cache."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CHUNK = 1 << 20


def git_blob_id(path: Path) -> str:
    """The id git gives a file's content."""
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    return _digest(path, digest)


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    return _digest(path, hashlib.sha256())


def cache_folder() -> Path:
    """`$DISTILL_CACHE`, or `distill` in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("DISTILL_CACHE") or Path(base) / "distill").expanduser()


@contextmanager
def aside(target: Path) -> Iterator[Path]:
    """A temporary path beside `target` that replaces it at the end, or vanishes on an error."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _digest(path: Path, digest: hashlib._Hash) -> str:
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
