"""What watches single steps: threads, a loss that is no number, a validation after the last."""

import math
import time
from typing import Any

import pytorch_lightning as pl
import torch
from tqdm.auto import tqdm

from distill.core.errors import DistillError, counted
from distill.core.threads import ThreadTuner


class AdaptiveThreads(pl.Callback):
    """Every training step runs on the number of threads that is fastest at present.

    A change is said in a line: results depend on the number in their last bits. Validation runs on
    the number of the step before. For one process on the CPU, whose steps nothing else holds up.
    """

    def __init__(self, tuner: ThreadTuner) -> None:
        self.tuner, self._threads = tuner, tuner.most
        self._begun = 0.0

    def on_train_batch_start(self, trainer: pl.Trainer, *_rest: object) -> None:
        threads, before = self.tuner.next(), self._threads
        torch.set_num_threads(threads)
        if threads != before:
            why = "other programs use the cores" if threads < before else "the cores are free"
            now = f"{counted(threads, 'thread')} instead of {before}"
            tqdm.write(f"step {trainer.global_step}: {why}, {now} (trainer.threads=N: always N)")
            self._threads = threads
        self._begun = time.perf_counter()

    def on_train_batch_end(self, *_args: object) -> None:
        self.tuner.took(time.perf_counter() - self._begun)

    def teardown(self, *_args: object, **_named: object) -> None:
        torch.set_num_threads(self.tuner.most)


class FixedThreads(pl.Callback):
    """The number that was asked for, also where Lightning has just set one of its own, as it does
    when it starts or joins several processes."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def setup(self, *_args: object, **_named: object) -> None:
        torch.set_num_threads(self.threads)


class Finite(pl.Callback):
    """Raises DistillError that names step, terms and pictures; nothing is saved afterwards.

    A callback and not part of the step, because the learning-rate finder is meant to diverge.
    """

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: Any, *_rest: object
    ) -> None:
        loss = outputs["loss"]
        if torch.isfinite(loss):
            return
        logged = {k: v for k, v in trainer.callback_metrics.items() if k.startswith("train")}
        terms = ", ".join(
            f"{name.removeprefix('train/')} {float(value):g}"
            for name, value in outputs.get("terms", logged).items()
            if not name.endswith(("_weighted", "/loss", "/generator"))
        )
        raise DistillError(
            f"the loss is {float(loss):g} at step {trainer.global_step} ({terms}) on "
            f"{', '.join(batch['name'])}; lower lr, or check these pictures"
        )

    def on_validation_end(self, trainer: pl.Trainer, *_rest: object) -> None:
        """BatchNorm's averages, and the weights', stay infinite once they are."""
        loss = float(trainer.callback_metrics.get("val/loss", 0.0))
        if not math.isfinite(loss):
            raise DistillError(
                f"the validation's loss is {loss:g} at step {trainer.global_step}; lower lr"
            )


class LastValidation(pl.Callback):
    """Validates after the last step, also where that is no multiple of the trainer's interval.

    Lightning validates before it stops, when it is asked to stop; of itself it ends without.
    """

    def on_train_batch_end(self, trainer: pl.Trainer, *_rest: object) -> None:
        if trainer.global_step >= trainer.max_steps:
            trainer.should_stop = True
