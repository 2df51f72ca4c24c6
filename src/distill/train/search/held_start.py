"""Runs that begin side by side: one at a time until its first step."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock

from distill.train.callbacks.watched import Watcher


class HeldStart(Watcher):
    """Holds the sweep's start until the run's first step: runs that label one set would meet."""

    def __init__(self, folder: Path) -> None:
        self._lock = FileLock(folder / ".start.lock")

    def __enter__(self) -> HeldStart:
        self._lock.acquire()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> bool | None:
        self._lock.release(force=True)
        return None

    def started(self) -> None:
        self._lock.release(force=True)
