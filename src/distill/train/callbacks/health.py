"""Logs the share of nonzero weights: the paper's students lost nine tenths of theirs."""

from __future__ import annotations

import pytorch_lightning as pl

from distill.metrics.nonzero_weights import (
    dead_channel_share,
    nonzero_weight_share,
    subnormal_share,
)
from distill.models.fold import fold_batchnorm
from distill.train.distillation import DistillModule


class Health(pl.Callback):
    """Logs the share of nonzero weights, dead channels and subnormal weights per validation.

    Of the 366,407 weights of the paper's released paprika student 25,412 are alive: coupled
    weight decay ate the rest.
    """

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        assert isinstance(pl_module, DistillModule)
        folded = fold_batchnorm(pl_module.student)
        shares = {
            "health/living_weights": nonzero_weight_share(folded),
            "health/dead_channels": dead_channel_share(folded),
            "health/subnormal_weights": subnormal_share(folded),
        }
        pl_module.log_dict(shares, sync_dist=True)
