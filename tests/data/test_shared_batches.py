"""Batches through memory that is used again: the same as a loader's own, whoever keeps them."""

import shutil
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import Dataset, default_collate

from distill.core.errors import DistillError
from distill.data import worker_loader
from distill.data.sampler import StreamSampler
from distill.data.worker_loader import AHEAD, SharedBatches, SharedBatchLoader

BATCH = 3
KEYS = ("photo", "target", "of others")


class Numbered(Dataset):
    """Sample p: two pictures of values that only p has, and its name. Some are late, one is bad."""

    def __init__(self, slow: int = 0, bad: int | None = None, odd: int | None = None) -> None:
        self.slow, self.bad, self.odd = slow, bad, odd

    def __len__(self) -> int:
        return 100

    def __getitem__(self, position: int) -> dict[str, Any]:
        if position == self.bad:
            raise DistillError("a: b; c")
        if self.slow and position % self.slow == 0:
            time.sleep(0.02)
        side = 5 if position == self.odd else 4
        photo = torch.full((side, side, 3), position, dtype=torch.uint8)
        return {
            "photo": photo,
            "target": photo[:2] + 100,
            "name": f"picture {position}",
            "weight": torch.tensor(0.5),
        }


def loader(
    dataset: Dataset, count: int, workers: int = 2, start: int = 0, copy=Tensor.clone, **more: Any
) -> SharedBatchLoader:
    sampler = StreamSampler(count * BATCH, start * BATCH, batch=BATCH)
    return SharedBatchLoader(dataset, BATCH, workers, sampler, KEYS, copy, **more)


def plain(dataset: Dataset, number: int) -> dict[str, Any]:
    return default_collate([dataset[number * BATCH + i] for i in range(BATCH)])


def same(batch: dict[str, Any], expected: dict[str, Any]) -> bool:
    tensors = all(torch.equal(batch[key], expected[key]) for key in ("photo", "target"))
    return tensors and batch["name"] == expected["name"] and batch.keys() == expected.keys()


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("slow", [0, 5])
def test_all_batches_are_what_they_are_without_it_and_stay_so(workers, slow):
    """Far more batches than places, all kept to the end: none lies where others are put."""
    dataset = Numbered(slow)
    count = 5 * workers * (AHEAD + 1) + 1
    found = list(loader(dataset, count, workers))
    assert len(found) == count
    for number, batch in enumerate(found):
        assert same(batch, plain(dataset, number))


def test_a_place_is_not_filled_again_before_it_was_taken():
    """A main process so slow to take a batch that the others have filled all they may meanwhile."""

    def slowly(values: Tensor) -> Tensor:
        time.sleep(0.02)
        return values.clone()

    for number, batch in enumerate(loader(Numbered(), 24, 2, copy=slowly)):
        assert same(batch, plain(Numbered(), number))


def test_a_second_round_begins_anew_whatever_was_left_of_the_first():
    batches = loader(Numbered(), 12, 2, persistent_workers=True)
    first = iter(batches)
    for _ in range(5):
        next(first)
    del first
    again = list(batches)
    assert [same(batch, plain(Numbered(), n)) for n, batch in enumerate(again)] == [True] * 12


def test_a_batch_that_does_not_fit_comes_the_usual_way():
    dataset = Numbered(odd=0)
    made = SharedBatchLoader(dataset, 1, 1, StreamSampler(4, 1), KEYS, Tensor.clone)
    assert [b["photo"].shape[1] for b in made] == [4, 4, 4]
    made.sampler.start = 0
    assert [b["photo"].shape[1] for b in made] == [5, 4, 4, 4]


def test_the_copy_is_what_it_is_asked_for():
    found = list(loader(Numbered(), 3, copy=lambda values: values.double() / 2))
    assert found[2]["photo"].dtype == torch.float64
    assert found[2]["photo"][1].unique().tolist() == [3.5]


def test_an_error_is_raised_as_it_was():
    found = []
    with pytest.raises(DistillError, match="a: b; c"):
        found.extend(loader(Numbered(bad=7), 5))
    assert len(found) == 2


def test_without_a_loading_process_a_batch_is_a_batch():
    shared = SharedBatches(Numbered()[0], KEYS, BATCH, 1)
    samples = [Numbered()[i] for i in range(BATCH)]
    assert same(shared.collate(samples), default_collate(samples))


def test_too_little_shared_memory_is_one_line(monkeypatch):
    """Two processes, three places each, of three samples of 48 + 24 bytes."""
    needed = 2 * 3 * BATCH * (48 + 24)
    usage = SimpleNamespace(free=needed)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    monkeypatch.setattr(worker_loader, "SHARED", Path())
    assert SharedBatches(Numbered()[0], KEYS, BATCH, 2).places == 3
    usage.free -= 1
    with pytest.raises(DistillError, match=r"data\.workers=2: .* --shm-size=1g.*data\.workers=0"):
        SharedBatches(Numbered()[0], KEYS, BATCH, 2)
