"""Loss terms that begin to count late in a run."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl

from distill.train.distillation import DistillModule


class LateTerms(pl.Callback):
    """Tells the criterion before each batch how far the run is, by its steps alone.

    So a resumed run trains the same terms. A callback and not part of the step, because the
    learning-rate finder's steps are none of the run's.
    """

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        assert isinstance(pl_module, DistillModule)
        pl_module.criterion.advance(trainer.global_step / trainer.max_steps)
