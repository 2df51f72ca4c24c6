"""Every checkpoint says how it was made."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl


class Provenance(pl.Callback):
    """Puts the run's settings, as plain values, under `distill` into every checkpoint."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        checkpoint["distill"] = self.settings
