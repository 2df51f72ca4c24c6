"""photo | teacher | student grids, as PNG files and in TensorBoard, at every validation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.loggers import TensorBoardLogger
from torchvision.transforms.functional import pil_to_tensor

from distill.data.pictures import save_png, sheet
from distill.module import DistillModule

TITLES = ("photo", "teacher", "student")


class Previews(pl.Callback):
    """Writes `FOLDER/step-NNNNNN.png` with the first `count` validation pictures."""

    def __init__(self, folder: Path, count: int = 4) -> None:
        self.folder, self.count = folder, count

    def on_validation_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        if batch_idx > 0 or trainer.sanity_checking or not trainer.is_global_zero:
            return
        assert isinstance(pl_module, DistillModule)
        batch = {key: value[: self.count] for key, value in batch.items()}
        with torch.no_grad():
            drawn, target = pl_module(batch["photo"]), pl_module.target_of(batch)
        page = sheet(list(zip(batch["photo"], target, drawn, strict=True)), TITLES)
        save_png(page, self.folder / f"step-{trainer.global_step:06d}.png")
        for logger in trainer.loggers:
            if isinstance(logger, TensorBoardLogger):
                picture = pil_to_tensor(page)
                logger.experiment.add_image("photo_teacher_student", picture, trainer.global_step)
