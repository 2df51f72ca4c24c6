"""Grids of samples, as PNG files and for the loggers, at every validation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch

from distill.core.arrays import save_png
from distill.core.images import sheet
from distill.train.loggers import log_picture


class Previews(pl.Callback):
    """Writes `FOLDER/step-NNNNNN.png` with the first `count` validation pictures.

    The module's `preview(batch)` gives the columns: pictures (N, 3 or 4, H, W) by their titles.
    """

    def __init__(self, folder: Path, count: int = 4) -> None:
        self.folder, self.count = folder, count
        self._rows: list[list[torch.Tensor]] = []

    def on_validation_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: Any,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        *_rest: Any,
    ) -> None:
        if trainer.sanity_checking or not trainer.is_global_zero:
            return
        if batch_idx == 0:
            self._rows = []
        if len(self._rows) >= self.count:
            return
        batch = {key: value[: self.count - len(self._rows)] for key, value in batch.items()}
        with torch.no_grad():
            columns = pl_module.preview(batch)
        rows = [list(row) for row in zip(*columns.values(), strict=True)]
        shape = (self._rows or rows)[0][0].shape  # a sheet's: batches may be of several
        self._rows += [row for row in rows if row[0].shape == shape]
        if len(self._rows) == self.count or batch_idx + 1 == trainer.num_val_batches[0]:
            self._show(trainer, list(columns))

    def _show(self, trainer: pl.Trainer, titles: list[str]) -> None:
        page = sheet(self._rows, titles)
        save_png(page, self.folder / f"step-{trainer.global_step:06d}.png")
        for logger in trainer.loggers:
            log_picture(logger, "_".join(titles), page, trainer.global_step)
