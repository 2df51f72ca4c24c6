"""What a run shows of itself: metrics.csv, grids of samples, one progress bar."""

import csv
import time
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from tqdm.auto import tqdm

from distill.core.arrays import save_png
from distill.core.files import atomic_write
from distill.core.images import sheet
from distill.core.progress import bar
from distill.runs.run_folder import metrics_rows
from distill.train.loggers import log_picture

ROWS = 4  # of a grid of samples
SHOWN = ("train/loss", "val/psnr")  # and what a module has as `progress`


class MetricsTable(pl.Callback):
    """Readable with anything, and kept across resumes.

    Appends `step, name …` rows to a CSV file; rows after the resumed step are
    dropped.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, str]] = []
        self.columns: list[str] = ["step"]

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        # What is damaged is left out: the run itself is whole.
        old = [row for row in metrics_rows(self.path) if str(row.get("step")).isdecimal()]
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


class Previews(pl.Callback):
    """Writes `FOLDER/step-NNNNNN.png` with the first ROWS validation pictures, at each validation.

    The module's `preview(batch)`, where it has one, gives the columns: pictures (N, 3 or 4, H, W)
    by their titles.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._rows: list[list[torch.Tensor]] = []

    def on_validation_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: Any,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        *_rest: object,
    ) -> None:
        if not trainer.is_global_zero or not hasattr(pl_module, "preview"):
            return
        if batch_idx == 0:
            self._rows = []
        if len(self._rows) >= ROWS:
            return
        batch = {key: value[: ROWS - len(self._rows)] for key, value in batch.items()}
        with torch.no_grad():
            columns = pl_module.preview(batch)
        rows = [list(row) for row in zip(*columns.values(), strict=True)]
        shape = (self._rows or rows)[0][0].shape  # a sheet's: batches may be of several
        self._rows += [row for row in rows if row[0].shape == shape]
        if len(self._rows) == ROWS or batch_idx + 1 == trainer.num_val_batches[0]:
            page = sheet(self._rows, list(columns))
            save_png(page, self.folder / f"step-{trainer.global_step:06d}.png")
            for logger in trainer.loggers:
                log_picture(logger, "_".join(columns), page, trainer.global_step)


class Progress(pl.Callback):
    """One progress bar over the whole run, with loss, rate and time left.

    Counts optimiser steps; a resumed run starts where it stopped.
    """

    def __init__(self) -> None:
        self.bar = tqdm(disable=True)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if not trainer.is_global_zero:
            return
        self.bar = bar(trainer.max_steps, "step", "training")
        self.bar.initial = self.bar.n = self.bar.last_print_n = trainer.global_step

    def on_train_batch_start(self, trainer: pl.Trainer, *_rest: object) -> None:
        # What TensorBoard's curves go by. Lightning counts the step before a validation twice in a
        # run that resumes right after it.
        trainer.fit_loop.epoch_loop._batches_that_stepped = trainer.global_step

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: Any, outputs: Any, *_rest: object
    ) -> None:
        shown = not self.bar.disable and (  # when it is time, and at the end
            time.time() - self.bar.last_print_t >= self.bar.mininterval
            or trainer.global_step == self.bar.total
        )
        if shown:
            metrics = dict(trainer.callback_metrics)
            if pl_module.automatic_optimization:  # of this step; of accumulated batches a part
                metrics["train/loss"] = trainer.accumulate_grad_batches * outputs["loss"]
            names = [n for n in (*SHOWN, *getattr(pl_module, "progress", ())) if n in metrics]
            figures = {n.split("/")[-1]: f"{float(metrics[n]):.4g}" for n in names}
            self.bar.set_postfix(figures, refresh=False)
        self.bar.update(trainer.global_step - self.bar.n)

    def on_train_end(self, *_args: object) -> None:
        self.bar.close()

    def on_exception(self, *_args: object) -> None:
        self.bar.close()  # so that the message starts on a line of its own
