"""The data module: a training stream that can start anywhere, and a fixed validation set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, Dataset, Subset, default_collate

from distill.core.images import from_pixels
from distill.core.process import worker_init_fn
from distill.data.datasets import HeldOutPairs
from distill.data.sampler import StreamSampler
from distill.data.shared_batches import SharedBatchLoader
from distill.data.worker_errors import ErrorForwardingLoader
from distill.models.students.global_statistics import THUMBNAIL

PICTURES = ("photo", "thumbnail", "target", "a", "b")  # of a batch


def spread(items: Sequence[Any], count: int) -> list[Any]:
    """At most `count` of a sequence, evenly from first to last."""
    chosen = np.linspace(0, len(items) - 1, min(count, len(items))).round().astype(int)
    return [items[int(i)] for i in chosen]


class DistillData(pl.LightningDataModule):
    """Batches of {photo, name} and, for pairs, {target}, or of {a, b, name}: pictures in [0, 1].

    The training set is asked for positions of an endless stream, of which one epoch is the whole
    run (`max_steps` batches); it starts at the batches already done, which Lightning knows from the
    checkpoint. `val_limit` bounds the pictures of a validation, which are spread over the set: that
    lies folder by folder.
    """

    def __init__(
        self,
        train: Dataset,
        val: Dataset,
        batch_size: int,
        workers: int = 2,
        val_limit: int | None = None,
    ) -> None:
        super().__init__()
        self.train, self.val = train, val
        self.batch_size, self.workers, self.val_limit = batch_size, workers, val_limit

    def train_dataloader(self) -> DataLoader:
        trainer = self.trainer
        assert trainer is not None
        world, batches = trainer.world_size, trainer.accumulate_grad_batches
        step = batches * self.batch_size * world
        total, start = trainer.max_steps * step, trainer.global_step * step
        sampler = StreamSampler(total, start, trainer.global_rank, world, self.batch_size)
        return self._loader(self.train, self.workers, sampler=sampler)

    @property
    def batches_per_pass(self) -> float:
        """Batches in which every training picture comes once."""
        return len(self.train) / self.batch_size  # type: ignore[arg-type]

    def first_batches(self, count: int) -> DataLoader:
        """The first `count` batches of the stream, whatever has been trained."""
        return self._loader(self.train, 0, sampler=StreamSampler(count * self.batch_size))

    def val_dataloader(self) -> DataLoader:
        count = len(self.val)  # type: ignore[arg-type]
        chosen = spread(range(count), self.val_limit or count)
        if isinstance(self.val, HeldOutPairs):
            most = self.batch_size * THUMBNAIL**2  # pixels of a batch
            return self._loader(self.val, workers=0, batches=self.val.batches(chosen, most))
        return self._loader(Subset(self.val, chosen), workers=0)

    def on_after_batch_transfer(self, batch: dict[str, Any], dataloader_idx: int) -> dict[str, Any]:
        """The samples' bytes as pictures, where the network is."""
        stored = {k: batch[k] for k in PICTURES if k in batch and batch[k].dtype == torch.uint8}
        return batch | {key: from_pixels(values) for key, values in stored.items()}

    def _loader(
        self,
        dataset: Dataset,
        workers: int,
        sampler: StreamSampler | None = None,
        batches: Sequence[Sequence[int]] | None = None,
    ) -> DataLoader:
        accelerator = type(self.trainer.accelerator).__name__ if self.trainer else ""
        on_cpu = accelerator == "CPUAccelerator"
        common: dict[str, Any] = {
            "num_workers": workers,
            "persistent_workers": workers > 0,
            "worker_init_fn": worker_init_fn(low_priority=on_cpu),
        }
        if on_cpu and workers and sampler and next(iter(sampler), None) is not None:
            # Nothing is transferred: what takes a batch out of shared memory makes pictures of it.
            return SharedBatchLoader(
                dataset, self.batch_size, sampler=sampler, keys=PICTURES, copy=from_pixels, **common
            )
        common["pin_memory"] = accelerator == "CUDAAccelerator"
        if batches is not None:
            return ErrorForwardingLoader(
                dataset, 1, collate_fn=_alike, batch_sampler=batches, **common
            )
        return ErrorForwardingLoader(dataset, self.batch_size, sampler=sampler, **common)


def _alike(samples: list[dict[str, Any]]) -> Any:
    """A batch, without what another shape's picture was replaced by, as it cannot be read."""
    shape = samples[0]["photo"].shape
    return default_collate([each for each in samples if each["photo"].shape == shape])
