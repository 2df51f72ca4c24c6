"""Parallel runs start one at a time: each waits until the other's first step."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock

from distill.train.callbacks.observers import TrainingObserver


class StaggeredStart(TrainingObserver):
    """Locks the sweep's start until the run's first step: runs would label one set twice."""

    def __init__(self, folder: Path) -> None:
        self._lock = FileLock(folder / ".start.lock")

    def __enter__(self) -> StaggeredStart:
        self._lock.acquire()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> bool | None:
        self._lock.release(force=True)
        return None

    def started(self) -> None:
        self._lock.release(force=True)
