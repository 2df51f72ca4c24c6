"""Where sets or photos lie: a local folder, or what fsspec reads (s3://, gs://, memory:// …)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from distill.core.errors import DistillError, reason_of
from distill.core.files import write_whole

_LOCAL = ("", "file", "local")
_NOT_THERE = (FileNotFoundError, NotADirectoryError)
# Protocols of stores that have buckets, and no folders to be made: `makedirs` would make a bucket
# of a mistyped name.
_BUCKETS = {"s3", "gs", "gcs", "abfs", "abfss", "az", "oss", "oci"}


def is_address(text: str) -> bool:
    """Whether what people type is an address, of more than a local folder."""
    return _parts(text)[0] not in _LOCAL


def folder_at(text: str) -> Path | Address:
    """What people type for a folder: its path, or an address. Raises DistillError."""
    return Address(text) if is_address(text) else Path(_parts(text)[1])


def _parts(text: str) -> tuple[str, str]:
    """Protocol, "" without one, and what follows it."""
    protocol, _, rest = text.rpartition("://")
    return protocol, rest


class Address:
    """A folder by its local path or its address; what lies in it is named by relative paths.

    Whatever keeps it from being read or written is a DistillError, but for a file that is not
    there: that is a FileNotFoundError.
    """

    def __init__(self, text: str | Path) -> None:
        self.text = str(text).rstrip("/") or "/"
        protocol, rest = _parts(self.text)
        self.local = Path(rest) if protocol in _LOCAL else None
        if self.local is None:
            with self._problems():
                self._fs()  # what is missing to read it is said at once

    def __str__(self) -> str:
        return self.text

    @property
    def name(self) -> str:
        """The folder's own name."""
        return self.text.rpartition("/")[2]

    def read(self, path: str) -> bytes:
        """All of a file."""
        if self.local is not None:
            return (self.local / path).read_bytes()
        with self._problems():
            return self._fs().cat_file(self._at(path))

    def read_range(self, path: str, start: int, size: int) -> bytes:
        """`size` bytes of a file from `start` on, by one request; fewer at its end."""
        if self.local is not None:
            with (self.local / path).open("rb") as stream:
                stream.seek(start)
                return stream.read(size)
        with self._problems():
            return self._fs().cat_file(self._at(path), start=start, end=start + size)

    def copy_to(self, path: str, target: Path) -> None:
        """Copy a file to a local one."""
        with self._problems():
            self._fs().get_file(self._at(path), str(target))

    def write(self, path: str, content: bytes | memoryview) -> None:
        """Replace a file, whole or not at all: object stores publish what was sent completely."""
        if self.local is not None:
            write_whole(self.local / path, content)
            return
        with self._problems():
            fs = self._fs()
            if not _BUCKETS.intersection(fs.protocol):
                fs.makedirs(os.path.dirname(self._at(path)), exist_ok=True)
            try:
                fs.pipe_file(self._at(path), bytes(content))
            except FileNotFoundError:
                raise DistillError(
                    f"{self}: no such bucket, or it may not be seen; make it, or name another "
                    "address"
                ) from None

    def size(self, path: str) -> int | None:
        """Bytes of a file, None where there is none."""
        with suppress(*_NOT_THERE):
            if self.local is not None:
                return (self.local / path).stat().st_size
            with self._problems():
                return self._fs().size(self._at(path))
        return None

    def names(self, folder: str) -> set[str]:
        """The names of the files in a folder; none where there is no such folder."""
        with suppress(*_NOT_THERE):
            if self.local is not None:
                return {each.name for each in (self.local / folder).iterdir() if each.is_file()}
            with self._problems():
                fs = self._fs()
                fs.invalidate_cache()  # another process may have written meanwhile
                listed = fs.ls(self._at(folder), detail=True)
            return {each["name"].rpartition("/")[2] for each in listed if each["type"] == "file"}
        return set()

    def is_there(self) -> bool:
        """Whether a folder lies there; a store is asked for that without listing it."""
        with suppress(*_NOT_THERE):
            if self.local is not None:
                return self.local.is_dir()
            with self._problems():
                fs, root = self._root()
                fs.invalidate_cache()
                return fs.exists(root)
        return False

    def find(self) -> dict[str, dict[str, Any]]:
        """Every file below an address that is no local folder, by its path from there: what the
        store says of it. None where there is no such folder."""
        with suppress(*_NOT_THERE), self._problems():
            fs, root = self._root()
            fs.invalidate_cache()
            try:
                listed = _find(fs, root).items()
            finally:
                fs.invalidate_cache()  # some keep all that they have seen
            return {
                name.removeprefix(f"{root}/"): about
                for name, about in listed
                if about.get("type") == "file"
                and name.startswith(f"{root}/")
                and not name.endswith("/")
            }
        return {}

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        if self.local is not None:
            (self.local / path).unlink(missing_ok=True)
        elif self.size(path) is not None:
            with self._problems():
                self._fs().rm_file(self._at(path))

    def clear(self) -> None:
        """Remove the folder and all that lies in it."""
        if self.local is not None:
            shutil.rmtree(self.local, ignore_errors=True)
        else:
            for path in self.find():
                self.remove(path)

    def _at(self, path: str) -> str:
        return f"{self._root()[1]}/{path}"

    def _fs(self) -> Any:
        return self._root()[0]

    def _root(self) -> tuple[Any, str]:
        import fsspec  # 30 ms of every command that reads local folders alone

        # fsspec keeps one file system a process. Asked for again, since one that was opened before
        # a fork must not be used after it: its connections belong to the other process.
        fs, root = fsspec.core.url_to_fs(self.text)
        return fs, root.rstrip("/")

    @contextmanager
    def _problems(self) -> Iterator[None]:
        try:
            yield
        except (*_NOT_THERE, DistillError):
            raise
        except ImportError as error:  # fsspec says which package
            raise DistillError(f"{self.text}: {reason_of(error)} (pip install it)") from error
        except Exception as error:  # each kind of store raises its own
            raise DistillError(
                f"{self.text}: cannot be reached ({reason_of(error, 200)}); check the address and "
                "what gives access to it, run it again to resume"
            ) from error


def _find(fs: Any, root: str) -> dict[str, dict[str, Any]]:
    """What a store says of every file below a folder of it, by name.

    By the store's own `find`; fsspec's goes from folder to folder and leaves out, without a word,
    what cannot be listed.
    """
    from fsspec.asyn import AsyncFileSystem
    from fsspec.spec import AbstractFileSystem

    own = getattr(type(fs), "_find", AsyncFileSystem._find) is not AsyncFileSystem._find
    if own or type(fs).find is not AbstractFileSystem.find:
        return fs.find(root, detail=True)
    found, folders = {}, [root]
    while folders:
        folder = folders.pop()
        try:
            listed = fs.ls(folder, detail=True)
        except FileNotFoundError:  # gone meanwhile
            if folder == root:
                raise
            continue
        for about in listed:
            name = about["name"].rstrip("/")
            if about["type"] != "directory":
                found[name] = about
            elif name.startswith(f"{folder}/"):
                folders.append(name)
    return found
