"""Stop at a loss that is no number, and say where it came from."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
import torch

from distill.core.errors import DistillError


class Finite(pl.Callback):
    """Raises DistillError that names step, terms and pictures; nothing is saved afterwards.

    A callback and not part of the step, because the learning-rate finder is meant to diverge.
    """

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: Any, *_rest: Any
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
