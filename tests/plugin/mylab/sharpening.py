"""A recipe: a generator learns from pairs by L1 alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import nn

from distill_gan.recipes import GanRecipe
from distill_gan.settings import Pix2PixTrain


@dataclass(frozen=True, kw_only=True)
class PlainTrain(Pix2PixTrain):
    """distill.train recipe=plain"""

    recipe: str  # type: ignore[assignment]


class PlainModule(pl.LightningModule):
    def __init__(self, generator: nn.Module, lr: float) -> None:
        super().__init__()
        self.generator, self.lr = generator, lr

    def training_step(self, batch: Mapping[str, Any], index: int) -> Any:
        return F.l1_loss(self.generator(batch["photo"]), batch["target"])

    def validation_step(self, batch: Mapping[str, Any], index: int) -> None:
        loss = F.l1_loss(self.generator(batch["photo"]), batch["target"])
        self.log_dict({"val/loss": loss, "val/psnr": -10 * loss.log10()})

    def preview(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        return {"input": batch["photo"], "generator": self.generator(batch["photo"])}

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.generator.parameters(), self.lr)


class Plain(GanRecipe):
    name = "plain"
    settings = PlainTrain
    networks: ClassVar[Mapping[Any, str]] = {"AtoB": "generator"}
    monitor = "val/loss"
    learns_from = "pairs"

    def train(self, settings: PlainTrain, run: Any, first: bool) -> None:
        from distill.train.trainer import fit, make_trainer
        from distill_gan import gan_training, loaders

        checkpoint = run.resumable(settings)
        module = PlainModule(gan_training.generator(settings), settings.lr)
        trainer = make_trainer(settings, run, [])
        run.start(settings, checkpoint, "a few steps")
        fit(trainer, module, loaders.paired(settings), run, checkpoint)
