"""One progress bar over the whole run, with loss, rate and time left."""

from __future__ import annotations

import time
from typing import Any

import pytorch_lightning as pl
from tqdm.auto import tqdm

from distill.core.progress import bar

SHOWN = ("train/loss", "train/generator", "train/discriminator", "val/psnr", "val/frechet")


class Progress(pl.Callback):
    """Counts optimiser steps; a resumed run starts where it stopped."""

    def __init__(self) -> None:
        self.bar = tqdm(disable=True)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if not trainer.is_global_zero:
            return
        self.bar = bar(trainer.max_steps, "step", "training")
        self.bar.initial = self.bar.n = self.bar.last_print_n = trainer.global_step

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, *args: Any
    ) -> None:
        # What TensorBoard's curves go by. Lightning counts the step before a validation twice in a
        # run that resumes right after it.
        trainer.fit_loop.epoch_loop._batches_that_stepped = trainer.global_step

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: Any, outputs: Any, *_rest: Any
    ) -> None:
        if not self.bar.disable and self._is_seen(trainer.global_step):
            found = dict(trainer.callback_metrics)
            if pl_module.automatic_optimization:  # of this step; of accumulated batches a part
                found["train/loss"] = trainer.accumulate_grad_batches * outputs["loss"]
            shown = {n.split("/")[-1]: f"{float(found[n]):.4g}" for n in SHOWN if n in found}
            self.bar.set_postfix(shown, refresh=False)
        self.bar.update(trainer.global_step - self.bar.n)

    def _is_seen(self, step: int) -> bool:
        """Whether the bar is updated after this step: when it is time, and at the end."""
        due = time.time() - self.bar.last_print_t >= self.bar.mininterval
        return due or step == self.bar.total

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.bar.close()

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        self.bar.close()  # so that the message starts on a line of its own
