"""Files: written whole or not at all, their hashes, and the folder of the cache."""

import difflib
import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from distill.core.errors import FULL, DistillError, first_of

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def real_path(path: Path) -> Path:
    """The path without links and dots; one of a link that leads to itself as it is named.

    Path.resolve raises there; reading the file says what is wrong.
    """
    return Path(os.path.realpath(path))


def home_path(typed: str | Path) -> Path:
    """A path as people type it, with ~ and ~USER spelled out, but for a ~NAME that lies here.

    Path.expanduser raises where there is no such user; a file may be called that, too.
    """
    first = Path(typed).parts[:1]
    here = first and first[0] != "~" and os.path.lexists(first[0])
    return Path(typed) if here else Path(os.path.expanduser(typed))


def near_name(path: Path) -> str:
    """`; did you mean NAME?` where something of nearly that name lies there; else empty."""
    with suppress(OSError):
        near = difflib.get_close_matches(path.name, os.listdir(path.parent), n=1, cutoff=0.75)
        return f"; did you mean {path.with_name(near[0])}?" if near else ""
    return ""


@contextmanager
def atomic_write(target: Path, private: bool = False, resume: bool = False) -> Iterator[Path]:
    """A temporary path beside `target` that replaces it at the end, or vanishes on an error.

    What a killed process left there is written over; with `resume` it is still there to go on with,
    and an error leaves it too. A `private` file is readable by its owner alone, from the first
    byte on. A full or failing disk is told by an OSError that names the
    target.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary, handle = _temporary(target, resume=resume)
    try:
        temporary.chmod(0o600)  # whatever a killed process made of it
        yield temporary
        if not private:
            mask = os.umask(0)  # there is no other way to ask for it
            os.umask(mask)
            temporary.chmod(0o666 & ~mask)
        os.replace(temporary, target)
    except BaseException as error:
        if not (resume and temporary.exists() and temporary.stat().st_size):
            temporary.unlink(missing_ok=True)
        if (
            isinstance(error, OSError)
            and error.filename is None
            and error.errno in (*FULL, errno.EIO)
        ):
            error.filename = str(target)  # a write that fails names no file
        raise
    finally:
        if handle is not None:
            os.close(handle)


@contextmanager
def scratch_folder(target: Path) -> Iterator[Path]:
    """An empty folder beside `target` to make files in, which vanishes at the end.

    So does what a killed process left there.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    folder, handle = _temporary(target, folder=True)
    try:
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _temporary(target: Path, folder: bool = False, resume: bool = False) -> tuple[Path, int | None]:
    """A new file beside `target`, or a folder in which there may be something still; and the handle
    of its lock, which the system drops at a kill.

    Its name is always the same, so that the next process takes over what a killed one left. Where
    a living one has it, or the file system has no locks, it is a name of its own.
    """
    usual, new = target.with_name(f".{target.name}.part"), False
    if fcntl:
        if folder:
            with suppress(OSError):
                usual.mkdir()
                new = True
        handle = _lock(usual, os.O_RDONLY | os.O_DIRECTORY if folder else os.O_RDWR | os.O_CREAT)
        if handle is not None:
            if not folder and not resume:
                os.ftruncate(handle, 0)
            return usual, handle
        if new:
            usual.rmdir()
    unique = ".part", f".{target.name}.", str(target.parent)
    if folder:
        return Path(tempfile.mkdtemp(*unique)), None
    handle, name = tempfile.mkstemp(*unique)
    os.close(handle)
    return Path(name), None


def _lock(path: Path, flags: int) -> int | None:
    """The handle of a file or folder that no other process has locked, else None."""
    with suppress(OSError):  # a link, or another user's
        handle = os.open(path, flags | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its last owner may have renamed or removed it between our two calls.
            if os.path.samestat(os.fstat(handle), os.lstat(path)):
                return handle
        except OSError:  # locked, gone, or on a file system without locks
            pass
        os.close(handle)
    return None


@contextmanager
def room_in(folder: Path, remedy: str) -> Iterator[None]:
    """Tell a full disk in this block by a DistillError: the folder, the reason and the remedy."""
    try:
        yield
    except OSError as error:
        reason = first_of(error).errno
        if reason not in FULL:
            raise
        raise DistillError(f"{folder}: {os.strerror(reason).lower()}; {remedy}") from error


def write_whole(target: Path, content: str | bytes | memoryview, private: bool = False) -> None:
    """Replace a file by this text, as UTF-8, or these bytes, with `atomic_write`. Names of files
    in a text may be no UTF-8."""
    if isinstance(content, str):
        content = content.encode(errors="surrogateescape")
    with atomic_write(target, private) as temporary:
        temporary.write_bytes(content)


def write_json(target: Path, values: object) -> None:
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
    return home_path(os.environ.get("DISTILL_CACHE") or Path(base) / "distill")
