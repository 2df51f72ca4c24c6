"""The start and each validation of a training, told to whoever watches it, as a search does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytorch_lightning as pl


class Watcher:
    """Hears of a training in this process; what it raises ends that."""

    def started(self) -> None:
        """All is read, labelled and measured, the first step comes."""

    def validated(self, step: int, figures: Mapping[str, float]) -> None:
        """A validation after so many steps; figures by name, as in metrics.csv."""


_watchers: list[Watcher] = []


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Tell `watcher` of trainings that are made meanwhile."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def watching() -> list[pl.Callback]:
    """A callback for each that watches, none as a rule."""
    return [Watched(watcher) for watcher in _watchers]


class Watched(pl.Callback):
    """Tells one watcher."""

    def __init__(self, watcher: Watcher) -> None:
        self.watcher = watcher

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.watcher.started()

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if not trainer.sanity_checking:
            logged = trainer.callback_metrics.items()
            figures = {key: float(value) for key, value in logged if key.startswith("val/")}
            self.watcher.validated(trainer.global_step, figures)
