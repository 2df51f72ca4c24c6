"""One command at a time writes into a set, and a disk that fails it ends in one line."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from distill.core.errors import DistillError
from distill.data.labelled import register

LOCK = ".lock"
_FULL = (errno.ENOSPC, errno.EDQUOT)


def check_writable(root: Path) -> None:
    """Raises DistillError where `root` is not, or cannot become, a folder to write into."""
    there = next(path for path in (root, *root.absolute().parents) if os.path.exists(path))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise DistillError(f"{there}: not a folder to write pairs into; {_ELSEWHERE}")


@contextmanager
def writing(root: Path) -> Iterator[None]:
    """The set at `root` is this process's alone meanwhile; the system lets go when it dies.

    Raises DistillError when another process has it, the disk is full or the folder is closed.
    """
    lock = FileLock(root / LOCK)
    try:
        root.mkdir(parents=True, exist_ok=True)
        with lock.acquire(blocking=False):
            (root / LOCK).write_text(str(os.getpid()))
            _sweep(root)
            yield
    except Timeout:
        raise DistillError(
            f"{root}: another command is labelling into this folder{_holder(root)}; wait for it, "
            "or name another folder with data.root=DIR"
        ) from None
    except OSError as error:
        raise DistillError(f"{root}: {_said(error, root)}") from error


def _said(error: OSError, root: Path) -> str:
    if error.errno in _FULL:
        done = sum(map(len, register.pairs_on_disk(root).values()))
        return f"the disk is full, {done} pairs are done; free some space, the same command goes on"
    return f"cannot be written to ({(error.strerror or str(error)).lower()}); {_ELSEWHERE}"


def _holder(root: Path) -> str:
    """The process that has the lock, where it has said so already."""
    number = (root / LOCK).read_text()
    return f" (process {number})" if number else ""


def _sweep(root: Path) -> None:
    """Remove what a killed run left aside."""
    kinds = [kind for pair in register.KINDS for kind in pair]
    ours = [root / side / kind for side in register.SIDES for kind in kinds]
    for folder in (root, *ours):
        for path in folder.glob(".*.part"):
            path.unlink(missing_ok=True)


_ELSEWHERE = "name another one with data.root=DIR"
