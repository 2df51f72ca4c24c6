import pytest
import torch
from PIL import Image

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
    data = DistillData(*(PairSet(pairs, 64, train, alpha=True) for train in (True, False)), 2)
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
