"""A validation at the end of every run, wherever that is."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl


class LastValidation(pl.Callback):
    """Validates after the last step, also where that is no multiple of the trainer's interval.

    Lightning validates before it stops, when it is asked to stop; of itself it ends without.
    """

    def on_train_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        if trainer.global_step >= trainer.max_steps:
            trainer.should_stop = True
