import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from distill.core.errors import DistillError
from distill.losses.criterion import Criterion
from distill.losses.smooth_l1 import SmoothL1
from distill.metrics.line_figures import FIGURES, ink_sums
from distill.train.distillation import DistillModule


class Copy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, photo: Tensor) -> Tensor:
        return photo * self.scale


class Grey(Copy):
    def forward(self, photo: Tensor) -> Tensor:
        return super().forward(photo)[:, :1]


def lines(columns: Sequence[int], depth: float = 0.5) -> Tensor:
    """A light picture (3, 32, 32) with vertical lines one pixel wide."""
    picture = torch.full((3, 32, 32), 0.9)
    picture[..., list(columns)] -= depth
    return picture


def validated(
    pairs: Sequence[tuple[Tensor, Tensor]],
    tmp_path: Path,
    batch: int = 1,
    student: nn.Module | None = None,
) -> dict:
    """What a validation logs of a student that leaves each first picture as it is."""
    criterion = Criterion({"l1": SmoothL1()}, {"l1": 1.0})
    module = DistillModule(
        student or Copy(), criterion, partial(torch.optim.SGD), lambda *_: None, 0.1
    )
    items = [{"photo": a, "target": b, "name": str(i)} for i, (a, b) in enumerate(pairs)]
    trainer = pl.Trainer(
        accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=tmp_path,
    )  # fmt: skip
    logged = trainer.validate(module, DataLoader(items, batch), verbose=False)
    return dict(logged[0])


PAIRS = [
    (lines([8]), lines([8, 16, 24])),  # a third of much ink, and nothing wrong
    (lines([8, 20]), lines([8], depth=0.25)),  # all of a little, and as much that is wrong
    (lines([]), lines([])),  # none wanted and none drawn
]


@pytest.mark.parametrize("batch", [1, 2])
def test_ink_is_that_of_all_validation_pictures_together(tmp_path, batch):
    logged = validated(PAIRS, tmp_path, batch)
    assert logged["val/ink_recall"] == pytest.approx(2 / 4, abs=1e-5)
    assert logged["val/ink_precision"] == pytest.approx(2 / 3, abs=1e-5)
    assert logged["val/ink_depth"] == pytest.approx(0.75 / 1.75, abs=1e-5)
    assert logged["val/ink_recall_at_0.3"] == pytest.approx(1 / 3, abs=1e-5)
    assert logged["val/ink_mass"] == pytest.approx(1.5 / 1.75, abs=1e-5)
    assert 0 < logged["val/sharpness"] < 1


def test_targets_of_other_channels_are_refused_and_grey_ones_measured(tmp_path):
    with pytest.raises(DistillError, match=r"the batch's targets are \(1, 3, 32, 32\).*channels=3"):
        validated([(lines([8]), lines([8]))], tmp_path, student=Grey())
    logged = validated([(lines([8]), lines([8])[:1] - 0.1)], tmp_path, student=Grey())
    assert logged["val/psnr"] == pytest.approx(20, abs=1e-3)


def test_pictures_without_ink_have_no_such_figure(tmp_path):
    flat = lines([]), lines([])
    logged = validated([flat, flat], tmp_path)
    assert "val/psnr" in logged
    assert logged["val/photo_psnr"] == logged["val/psnr"]  # this student gives the photo back
    assert logged["val/photo_ssim"] == logged["val/ssim"]
    assert not [name for name in logged if "ink" in name or "sharp" in name]


def test_the_ink_of_other_processes_counts(tmp_path, monkeypatch):
    """This process has the first pair, another the second."""
    theirs = ink_sums(*(picture[None] for picture in PAIRS[1]))[0]

    def reduce(_strategy: Any, ours: Tensor, *_group: Any, reduce_op: str = "mean") -> Tensor:
        return ours + theirs if (ours.shape, reduce_op) == ((len(FIGURES), 2), "sum") else ours

    monkeypatch.setattr(pl.strategies.SingleDeviceStrategy, "reduce", reduce)
    logged = validated(PAIRS[:1], tmp_path)
    assert logged["val/ink_recall"] == pytest.approx(2 / 4, abs=1e-5)
    assert logged["val/ink_precision"] == pytest.approx(2 / 3, abs=1e-5)


def test_pictures_of_several_sizes_have_figures_of_each(tmp_path):
    """Of a student that gives the photo back, off by one fourth at 64 pixels, a half at 96."""

    def flat(side: int, value: float) -> Tensor:
        return torch.full((3, side, side), value)

    pairs = [(flat(64, 0.5), flat(64, 0.25)), (flat(96, 0.75), flat(96, 0.25))]
    logged = validated([*pairs, pairs[1]], tmp_path, batch=1)
    four, half = (-20 * math.log10(share) for share in (0.25, 0.5))
    assert logged["val/psnr_64"] == pytest.approx(four, abs=1e-3)
    assert logged["val/psnr_96"] == pytest.approx(half, abs=1e-3)
    assert logged["val/psnr"] == pytest.approx((four + 2 * half) / 3, abs=1e-3)
    assert "val/ssim_96" in logged
    assert "val/psnr_64" not in validated(pairs[:1], tmp_path / "alone")


@pytest.mark.parametrize("kept", [True, False])
def test_averages_are_kept_while_scale_and_shift_learn(tmp_path, kept):
    """Through validations, after which Lightning sets modes again, and in further passes."""
    student = nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3))
    norm = student[1]
    assert isinstance(norm, nn.BatchNorm2d)
    with torch.no_grad():
        norm.running_mean.fill_(0.3)
        norm.running_var.fill_(2.0)
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    criterion = Criterion({"l1": SmoothL1()}, {"l1": 1.0})
    module = DistillModule(
        student, criterion, partial(torch.optim.SGD), lambda *_: None, 0.1, keep_averages=kept
    )
    torch.manual_seed(0)
    photos = torch.rand(6, 3, 16, 16)
    items = [{"photo": x, "target": 1 - x, "name": str(i)} for i, x in enumerate(photos)]
    trainer = pl.Trainer(
        accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=tmp_path, max_steps=6, val_check_interval=2,
        check_val_every_n_epoch=None,
    )  # fmt: skip
    loader = DataLoader(items, 2)
    trainer.fit(module, loader, loader)
    after = norm.state_dict()
    assert not torch.equal(after["weight"], before["weight"])
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        assert torch.equal(after[name], before[name]) is kept
    module.eval()
    evaluated = module(photos)
    module.train()
    assert torch.allclose(module(photos), evaluated) is kept
