from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from PIL import Image
from torch.utils.data import Dataset

from distill.data.datamodule import DistillData
from distill.data.datasets import PairSet
from distill.data.pairs import Pair


@pytest.mark.parametrize(
    ("limit", "expected"), [(None, [*range(9)]), (3, [0, 4, 8]), (1, [0]), (20, [*range(9)])]
)
def test_a_limited_validation_is_spread_over_the_set(limit, expected):
    """Sets lie folder by folder: the first so many would be of one folder alone."""
    data = DistillData([], [*range(9)], batch_size=2, val_limit=limit)
    assert torch.cat([*data.val_dataloader()]).tolist() == expected


def test_batches_become_pictures_with_their_channels_last(tmp_path):
    colours = [(0, 51, 255), (255, 102, 0)]
    pairs = []
    for i, colour in enumerate(colours):
        pair = Pair(tmp_path / f"{i}.png", tmp_path / f"target {i}.png")
        Image.new("RGB", (64, 64), colour).save(pair.photo)
        Image.new("RGBA", (64, 64), (*colour, 51)).save(pair.target)
        pairs.append(pair)
    data = DistillData(*(PairSet(pairs, 64, train, channels=4) for train in (True, False)), 2)
    (raw,) = data.first_batches(1)
    batch = data.on_after_batch_transfer(raw, 0)
    assert sorted(batch["name"]) == ["0.png", "1.png"]
    for name, photo, target in zip(batch["name"], batch["photo"], batch["target"], strict=True):
        colour = torch.tensor(colours[int(name[0])])[:, None, None] / 255
        assert torch.equal(photo, colour.expand(3, 64, 64))
        assert torch.equal(target[:3], photo)
        assert torch.equal(target[3], torch.full((64, 64), 0.2))
    for pictures in (batch["photo"], batch["target"]):
        assert pictures.dtype == torch.float32
        assert pictures.is_contiguous(memory_format=torch.channels_last)


class Fixed(Dataset):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, position: int) -> dict[str, Any]:
        return {"photo": torch.full((2, 2, 3), position, dtype=torch.uint8), "name": str(position)}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("step", [0, 3, 4])
def test_training_begins_at_the_steps_that_are_done(workers, step):
    """Of four steps of two pictures; a run that is over has none left."""
    data = DistillData(Fixed(), Fixed(), 2, workers)
    trainer = pl.Trainer(accelerator="cpu", max_steps=4, logger=False, enable_checkpointing=False)
    progress = trainer.fit_loop.epoch_loop.automatic_optimization.optim_progress
    progress.optimizer.step.total.completed = step
    data.trainer = trainer
    assert trainer.global_step == step
    batches = [data.on_after_batch_transfer(batch, 0) for batch in data.train_dataloader()]
    assert [batch["name"] for batch in batches] == [
        [str(2 * n), str(2 * n + 1)] for n in range(step, 4)
    ]
    for batch in batches:
        values = torch.tensor([float(name) for name in batch["name"]]) / 255
        assert torch.equal(batch["photo"], values[:, None, None, None].expand(2, 3, 2, 2))
