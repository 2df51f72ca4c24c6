"""One progress bar over the whole run, with loss, rate and time left."""

from __future__ import annotations

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
        # run that goes on from right after it.
        trainer.fit_loop.epoch_loop._batches_that_stepped = trainer.global_step

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, *args: Any
    ) -> None:
        shown = {
            name.split("/")[-1]: f"{float(trainer.callback_metrics[name]):.4g}"
            for name in SHOWN
            if name in trainer.callback_metrics
        }
        self.bar.set_postfix(shown, refresh=False)
        self.bar.update(trainer.global_step - self.bar.n)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.bar.close()

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        self.bar.close()  # so that the message starts on a line of its own
