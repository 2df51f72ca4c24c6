"""Opens the external loggers, and logs the run's settings and final figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.loggers.logger import DummyLogger

from distill.config.settings.training import Loggers
from distill.runs.run_folder import Run
from distill.train.ending import final_figures
from distill.train.loggers import log_final, log_settings, open_external


class ExternalLoggers(pl.Callback):
    """Opened when training starts, not when the trainer is made: resume=false renames the folder
    between the two. Of several processes the first alone has them."""

    def __init__(self, loggers: Loggers, run: Run, settings: Mapping[str, Any]) -> None:
        self.loggers, self.run, self.settings = loggers, run, settings

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        if trainer.is_global_zero:
            trainer.loggers += open_external(self.loggers, self.run, self.settings)
        elif not trainer.loggers and (self.loggers.wandb or self.loggers.mlflow):
            trainer.loggers = [DummyLogger()]

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.is_global_zero:
            for logger in trainer.loggers:
                log_settings(logger, self.settings, trainer.global_step)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        # After the last validation, before Lightning closes TensorBoard's file.
        if trainer.is_global_zero:
            log_final(trainer.loggers, final_figures(self.run), trainer.global_step)
