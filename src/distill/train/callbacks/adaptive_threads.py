"""The number of threads: as asked for, or fewer while other programs use the cores."""

from __future__ import annotations

import time
from typing import Any

import pytorch_lightning as pl
import torch
from tqdm.auto import tqdm

from distill.core.threads import ThreadTuner


class AdaptiveThreads(pl.Callback):
    """Every training step runs on the number of threads that is fastest at present.

    A change is said in a line: results depend on the number in their last bits. Validation runs on
    the number of the step before. For one process on the CPU, whose steps nothing else holds up.
    """

    def __init__(self, tuner: ThreadTuner) -> None:
        self.tuner, self._said = tuner, tuner.most
        self._begun = 0.0

    def on_train_batch_start(self, trainer: pl.Trainer, *_rest: Any) -> None:
        threads, before = self.tuner.next(), self._said
        torch.set_num_threads(threads)
        if threads != before:
            why = "other programs use the cores" if threads < before else "the cores are free"
            now = f"{threads} thread{'s'[: threads != 1]} instead of {before}"
            tqdm.write(f"step {trainer.global_step}: {why}, {now} (trainer.threads=N: always N)")
            self._said = threads
        self._begun = time.perf_counter()

    def on_train_batch_end(self, *_args: Any) -> None:
        self.tuner.took(time.perf_counter() - self._begun)

    def teardown(self, *_args: Any, **_named: Any) -> None:
        torch.set_num_threads(self.tuner.most)


class FixedThreads(pl.Callback):
    """The number that was asked for, also where Lightning has just set one of its own, as it does
    when it starts or joins several processes."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def setup(self, *_args: Any, **_named: Any) -> None:
        torch.set_num_threads(self.threads)
