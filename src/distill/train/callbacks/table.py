"""metrics.csv: one row per logging step, readable with anything, and kept across resumes."""

from __future__ import annotations

import csv
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytorch_lightning as pl

from distill.core.files import atomic_write


class MetricsTable(pl.Callback):
    """Appends `step, name …` rows to a CSV file; rows after the resumed step are dropped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, str]] = []
        self.columns: list[str] = ["step"]

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self.path.is_file():
            old: list[dict[str, str]] = []
            # What is damaged is left out: the run itself is whole.
            with self.path.open(newline="", errors="replace") as stream, suppress(csv.Error):
                old += (row for row in csv.DictReader(stream) if str(row.get("step")).isdecimal())
            self.rows = [row for row in old if int(row["step"]) <= trainer.global_step]
            self.columns = list(dict.fromkeys(k for row in self.rows for k in row)) or ["step"]

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if (batch_idx + 1) % trainer.accumulate_grad_batches:
            return  # no step was taken
        if trainer.global_step % trainer.log_every_n_steps == 0:  # type: ignore[attr-defined]
            self._add(trainer, "train/")

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if not trainer.sanity_checking:
            self._add(trainer, ("val/", "health/"))

    def _add(self, trainer: pl.Trainer, prefixes: str | tuple[str, ...]) -> None:
        if not trainer.is_global_zero:
            return
        logged = {k: v for k, v in trainer.callback_metrics.items() if k.startswith(prefixes)}
        row = {"step": str(trainer.global_step)} | {k: f"{float(v):.6g}" for k, v in logged.items()}
        row["lr"] = f"{trainer.optimizers[0].param_groups[0]['lr']:.6g}"
        self.rows.append(row)
        self.columns = list(dict.fromkeys([*self.columns, *row]))
        with atomic_write(self.path) as temporary, temporary.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, self.columns, restval="")
            writer.writeheader()
            writer.writerows(self.rows)
