"""What was typed on this machine: names by which a teacher brings in code or files.

A run's settings name its teacher, and the run may be somebody else's. What such a name would import
or fetch is done only for those who have typed that name themselves.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from distill.core.errors import DistillError
from distill.core.files import cache_folder, write_whole

FILE = "typed.txt"


def check_typed(setting: str, typed: bool) -> None:
    """Remember KEY=VALUE where the user has `typed` it; else it must have been, some time before.

    Raises DistillError where it was not.
    """
    path = cache_folder() / FILE
    known = _lines(path)
    if setting in known:
        return
    if not typed:
        raise DistillError(
            f"{setting}: a run names it, and it was never typed on this machine; if you trust it, "
            f"add this setting as a line to {path}, or label photos by it"
        )
    with suppress(OSError):  # a cache that cannot be written to: then it is asked for again
        write_whole(path, "".join(f"{each}\n" for each in [*known, setting]))


def _lines(path: Path) -> list[str]:
    with suppress(OSError, ValueError):
        return path.read_text(encoding="utf-8").splitlines()
    return []
