"""Observers of a training in this process, such as a search: its start and each validation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytorch_lightning as pl


class TrainingObserver:
    """Is called at events of a training in this process; what it raises ends that."""

    def started(self) -> None:
        """Before the first step, when all is read, labelled and measured."""

    def validated(self, step: int, figures: Mapping[str, float]) -> None:
        """A validation after so many steps; figures by name, as in metrics.csv."""


_watchers: list[TrainingObserver] = []


@contextmanager
def observed_by(watcher: TrainingObserver) -> Iterator[None]:
    """Call `watcher` for trainings inside this context."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def observer_callbacks() -> list[pl.Callback]:
    """A callback for each observer; usually none."""
    return [ObserverCallback(watcher) for watcher in _watchers]


class ObserverCallback(pl.Callback):
    """Calls one observer."""

    def __init__(self, watcher: TrainingObserver) -> None:
        self.watcher = watcher

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.watcher.started()

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if not trainer.sanity_checking:
            logged = trainer.callback_metrics.items()
            figures = {key: float(value) for key, value in logged if key.startswith("val/")}
            self.watcher.validated(trainer.global_step, figures)
