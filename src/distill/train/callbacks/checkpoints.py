"""last.ckpt and the one before it, from which a run resumes exactly; Ctrl-C and SIGTERM."""

import io
import os
import shutil
import signal
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Any

import pytorch_lightning as pl
import torch
from lightning_fabric.plugins.io.torch_io import TorchCheckpointIO

from distill.config.settings.training import Training
from distill.core.files import atomic_write, write_whole
from distill.core.licence_terms import Terms, read_terms
from distill.core.state_dicts import usable
from distill.data.datamodule import DistillData
from distill.data.licence_terms import terms_of_run
from distill.data.photo_table import RUN_PAIRS
from distill.runs.run_folder import Run

EVERY = 30  # seconds between checkpoints: what a killed run loses at most


class Interrupted(Exception):
    """A signal asked for an end; the checkpoint is written."""


class Checkpoints(pl.Callback):
    """Saves between two steps, and stops there once a signal came.

    Between steps means at the start of the next one: all of the last step is done by then, its
    validation and what follows from it too. (At the end of a batch, where Lightning saves, a
    validation that is due would be lost, and with it a plateau schedule's step.) A second signal
    ends the process at once. Every checkpoint has the run's `settings`, as plain values, under
    `distill`, and under `terms` whose terms it is under, those of an earlier part of it among them.
    """

    def __init__(self, run: Run, settings: Training) -> None:
        self.run, self.settings, self.asked = run, settings, False
        self._licence_terms = Terms(())
        self._saved_at = time.monotonic()
        self._between_steps = False

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        now = terms_of_run(self.settings, fresh=True, run=self.run.folder).chain
        terms = self._licence_terms.amended(now, fresh=True)
        permission = self.settings.licence.i_have_permission
        self._licence_terms = terms.permitted("train", permission)

        data = getattr(trainer, "datamodule", None)
        begins = trainer.global_step == 0 or not (self.run.folder / RUN_PAIRS).is_file()
        if isinstance(data, DistillData) and begins and trainer.is_global_zero:
            data.remember(self.run.folder)

        # Here, not earlier: Lightning has set its own handler for SIGTERM, which saves nothing.
        def ask(number: int, _frame: FrameType | None) -> None:
            self.asked = True
            signal.signal(number, signal.SIG_DFL)
            # Not print: the signal may have come in the middle of one.
            os.write(2, b"\nfinishing the step, then saving; once more: ends at once\n")

        if current_thread() is main_thread():  # Python's rule for handlers
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, ask)

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        if batch_idx % trainer.accumulate_grad_batches:
            return
        # Whether it is so in any process: all must act at the same step.
        of_any = partial(trainer.strategy.reduce_boolean_decision, all=False)
        asked = of_any(self.asked)
        if asked or of_any(time.monotonic() - self._saved_at >= EVERY):
            self._between_steps = True
            self.save(trainer)
            self._between_steps = False
        if asked:
            raise Interrupted

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        checkpoint["distill"] = asdict(self.settings)
        checkpoint["terms"] = self._licence_terms.plain()
        if self._between_steps:
            # The next batch is announced but not trained: as if it had not been fetched yet.
            progress = checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]
            for count in ("total", "current"):
                progress[count]["ready"] = progress[count]["completed"]
            progress["is_last_batch"] = False  # else a resumed run begins another epoch with it

    def on_load_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        usable(checkpoint["state_dict"], self.run.last)
        for name, state in checkpoint["callbacks"].items():
            if name.startswith("EarlyStopping"):
                state["patience"] = self.settings.trainer.patience  # not what it was before
        if "terms" in checkpoint:  # a run from before there were any has none
            self._licence_terms = read_terms(checkpoint["terms"])

    def save(self, trainer: pl.Trainer) -> None:
        """Write last.ckpt whole; the earlier one becomes previous.ckpt, in case of a crash."""
        self._saved_at = time.monotonic()
        if trainer.is_global_zero and self.run.last.is_file():
            with atomic_write(self.run.previous) as kept:
                shutil.copyfile(self.run.last, kept)
        trainer.save_checkpoint(self.run.last)  # others than the first process write nothing


class AtomicCheckpoints(TorchCheckpointIO):
    """Checkpoints written whole or not at all, beside their place.

    Lightning's own way is by the system's folder for temporary files. That is often another disk,
    from which a move is a copy that can be cut short, and where a killed process leaves a file for
    ever.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None
    ) -> None:
        content = io.BytesIO()
        torch.save(checkpoint, content)
        write_whole(Path(path), content.getbuffer())
