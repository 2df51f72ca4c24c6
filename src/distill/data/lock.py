"""One command at a time writes into a set, and a disk that fails ends it with one line."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from distill.core.errors import DistillError, counted
from distill.data import photo_table

LOCK = ".lock"
_ELSEWHERE = "name another one with data.root=DIR"


def check_writable(root: Path) -> None:
    """Raises DistillError where `root` is not, or cannot become, a folder to write into."""
    there = next(path for path in (root, *root.absolute().parents) if os.path.exists(path))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise DistillError(f"{there}: not a folder to write pairs into; {_ELSEWHERE}")


@contextmanager
def writing(root: Path, folders: bool = True) -> Iterator[None]:
    """The set at `root` is this process's alone meanwhile; the system lets go when it dies.

    With `folders` its pairs lie there as files.

    Raises DistillError when another process has it, the disk is full or the folder is closed.
    """
    lock = FileLock(root / LOCK)
    try:
        root.mkdir(parents=True, exist_ok=True)
        with lock.acquire(blocking=False):
            (root / LOCK).write_text(str(os.getpid()))
            names = {name for two in photo_table.PAIR_FOLDERS for name in two}
            ours = [root / side / name for side in photo_table.SIDES for name in names]
            for folder in (root, *ours):
                for path in folder.glob(".*.part"):  # of a killed run
                    path.unlink(missing_ok=True)
            yield
    except Timeout:
        number = (root / LOCK).read_text()
        holder = f" (process {number})" if number else ""  # it may not have said so yet
        raise DistillError(
            f"{root}: another command is labelling into this folder{holder}; wait for it, or name "
            "another folder with data.root=DIR"
        ) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        said = f"cannot be written to ({reason}); {_ELSEWHERE}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            done = sum(map(len, photo_table.pairs_on_disk(root).values()))
            kept = f", {counted(done, 'pair')} done" if folders else ""
            said = f"the disk is full{kept}; free some space and run it again to resume"
        raise DistillError(f"{root}: {said}") from error
