"""A recipe that only this file knows: registered, with its training, every command can use it."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn

import distill_gan
from distill.config import compose, groups, registry
from distill.config.settings.base import Direction
from distill.config.settings.training import Train
from distill.core.errors import DistillError
from distill.eval_fid import __main__ as eval_fid
from distill.export import __main__ as export
from distill.prepare import __main__ as prepare
from distill.stylize import __main__ as stylize
from distill.train import __main__ as train
from distill.train import recipes
from distill.train.trainer import fit, make_trainer
from distill_gan import gan_training, loaders
from distill_gan.recipes import GanRecipe
from distill_gan.settings import Pix2PixTrain
from support.commands import run

SMALL = [
    *("recipe=plain", "data.root=pairs", "data.size=36", "data.crop_size=32", "data.workers=0"),
    *("data.val_fraction=0.4", "generator=resnet", "generator.build.blocks=1"),
    *("generator.build.width=8", "trainer.max_steps=4", "trainer.val_every=2"),
    *("trainer.log_every=1", "trainer.threads=1"),
]


@dataclass(frozen=True, kw_only=True)
class PlainTrain(Pix2PixTrain):
    """distill.train recipe=plain"""

    recipe: Literal["plain"]  # type: ignore[assignment]


class PlainModule(pl.LightningModule):
    """A generator that learns from pairs by L1 alone, without a discriminator."""

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


class PlainRecipe(GanRecipe):
    """What its runs are; `train_plain` is the other half."""

    name = "plain"
    settings = PlainTrain
    networks: ClassVar[Mapping[Direction, str]] = {"AtoB": "generator"}
    monitor = "val/loss"
    learns_from = "pairs"


def train_plain(settings: PlainTrain, run: Any, first: bool) -> None:
    checkpoint = run.resumable(settings)
    module = PlainModule(gan_training.generator(settings), settings.lr)
    trainer = make_trainer(settings, run, [])
    run.start(settings, checkpoint, "a few steps")
    fit(trainer, module, loaders.paired(settings), run, checkpoint)


@pytest.fixture
def plain(tmp_path, monkeypatch):
    """A working folder with pairs/ and photos/, and conf/ with one file more."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(groups.conf_folder(), tmp_path / "conf")
    text = (Path(distill_gan.__file__).parent / "conf/recipe/pix2pix.yaml").read_text()
    (tmp_path / "conf/recipe/plain.yaml").write_text(text.replace("pix2pix", "plain"))
    for module in (groups, compose):
        monkeypatch.setattr(module, "conf_folder", lambda: tmp_path / "conf")
    monkeypatch.setitem(registry.OURS, "plain", PlainRecipe())
    monkeypatch.setitem(recipes.TRAIN, "plain", train_plain)
    rng = np.random.default_rng(0)
    for folder in ("pairs/A", "pairs/B", "photos"):
        for number in range(8):
            noise = rng.integers(0, 255, (5, 5, 3), dtype=np.uint8)
            path = tmp_path / folder / f"Person_{number}_0001.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(noise).resize((64, 64), Image.Resampling.BICUBIC).save(path)
    return tmp_path


@pytest.mark.campaign
def test_it_is_trained_exported_evaluated_and_used(plain):
    assert run(train, *SMALL) == 0
    folder = plain / "runs/plain-pairs"
    assert "plain" in (folder / "config.yaml").read_text()

    assert run(export, "run=plain-pairs", "exporter.profile=any", "parity=0.01") == 0
    report = json.loads((folder / "export/report.json").read_text())
    assert (folder / "export/generator.onnx").is_file()
    assert report["recipe"] == "plain"

    assert run(eval_fid, "run=plain-pairs", "features=none") == 0
    assert json.loads((folder / "eval/results.json").read_text())["recipe"] == "plain"

    assert run(stylize, "photos/Person_0_0001.png", "-o", "out.png", "run=plain-pairs") == 0
    assert Image.open(plain / "out.png").size == (64, 64)

    teacher = ["style=custom", "style.name=own", "teacher.path=runs/plain-pairs"]
    small = ["style.resolution=64", "label.workers=0", "data.val_fraction=0.4"]
    assert run(prepare, *teacher, *small, "photos=photos") == 0
    assert len(list(plain.glob("data/pairs/own-photos-64/*/stylized/*.png"))) == 8


def test_a_checkpoint_of_an_unknown_recipe_is_refused():
    with pytest.raises(
        DistillError, match="recipe=other: unknown; there are distill, pix2pix, cyclegan"
    ):
        registry.settings_of({"recipe": "other"})


def test_runs_of_the_first_version_name_no_recipe():
    assert registry.schema_of({}) is Train
