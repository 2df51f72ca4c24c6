"""The data module: a training stream that can start anywhere, and a fixed validation set."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any, cast

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Subset, default_collate

from distill.config.settings.training import Train
from distill.core.arrays import MODES
from distill.core.errors import DistillError, counted
from distill.core.images import from_pixels
from distill.data.datasets import HeldOutPairs
from distill.data.kinds.registry import data_source
from distill.data.kinds.source import FOLDER_ONLY, Split
from distill.data.pairs import Pairs
from distill.data.photo_table import RUN_PAIRS, write_sides
from distill.data.photos import Side, spread
from distill.data.sampler import StreamSampler
from distill.data.worker_loader import ErrorForwardingLoader, SharedBatchLoader
from distill.models.students.global_statistics import THUMBNAIL

REPEATED = 64  # pictures of a batch that may come from fewer
PICTURES = ("photo", "thumbnail", "target", "a", "b")  # of a batch


class DistillData(pl.LightningDataModule):
    """Batches of {photo, name} and, for pairs, {target}, or of {a, b, name}: pictures in [0, 1].

    The training set is asked for positions of an endless stream, of which one epoch is the whole
    run (`max_steps` batches); it starts at the batches already done, which Lightning knows from the
    checkpoint. `val_limit` bounds the pictures of a validation, which are spread over the set: that
    lies folder by folder. `pairs` are those of a folder, by side, which a run remembers.

    >>> module, data = distill.lightning_parts("pairs", encoder={"weights": "none"})
    >>> len(data.train), len(data.val)
    (12, 2)
    """

    def __init__(
        self,
        train: Dataset,
        val: Dataset,
        batch_size: int,
        workers: int = 2,
        val_limit: int | None = None,
        pairs: Mapping[Side, Pairs] | None = None,
    ) -> None:
        super().__init__()
        self.pairs = pairs
        self.train, self.val = train, val
        self.batch_size, self.workers, self.val_limit = batch_size, workers, val_limit

    def check_batch(self) -> None:
        """Raises DistillError where a step would hold many times what there is, for its memory."""
        there = len(self.train)  # type: ignore[arg-type]
        if self.batch_size > max(there, REPEATED):
            raise DistillError(
                f"data.batch_size={self.batch_size}: more than there is to learn from, "
                f"{counted(there, 'picture')}; set at most {max(there, REPEATED)}"
            )

    def remember(self, run: Path) -> None:
        """Have a run's folder say with which pairs it began."""
        named = (self.pairs or {}).items()
        rows = [(pair.name, side) for side, pairs in named if side != "test" for pair in pairs]
        if rows:
            write_sides(run / RUN_PAIRS, rows)

    def train_dataloader(self) -> DataLoader:
        self.check_batch()
        trainer = self.trainer
        assert trainer is not None
        if trainer.max_steps < 0:
            raise DistillError("the training pictures have no end: pl.Trainer(max_steps=N)")
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
        self.check_batch()
        return self._loader(self.train, sampler=StreamSampler(count * self.batch_size))

    def val_dataloader(self) -> DataLoader:
        count = len(self.val)  # type: ignore[arg-type]
        chosen = spread(range(count), self.val_limit or count)
        if isinstance(self.val, HeldOutPairs):
            most = self.batch_size * THUMBNAIL**2  # pixels of a batch
            batches = self.val.batches(chosen, most)
            return self._loader(self.val, batch_size=1, batch_sampler=batches, collate_fn=_alike)
        return self._loader(Subset(self.val, chosen))

    def on_after_batch_transfer(self, batch: dict[str, Any], dataloader_idx: int) -> dict[str, Any]:
        """The samples' bytes as pictures, where the network is."""
        stored = {k: batch[k] for k in PICTURES if k in batch and batch[k].dtype == torch.uint8}
        return batch | {key: from_pixels(values) for key, values in stored.items()}

    def _loader(
        self, dataset: Dataset, workers: int = 0, sampler: StreamSampler | None = None, **how: Any
    ) -> DataLoader:
        accelerator = type(self.trainer.accelerator).__name__ if self.trainer else ""
        on_cpu = accelerator == "CPUAccelerator"
        how = {
            "batch_size": self.batch_size,
            "sampler": sampler,
            "num_workers": workers,
            "persistent_workers": workers > 0,
            "low_priority": on_cpu,
            **how,
        }
        if on_cpu and workers and sampler and next(iter(sampler), None) is not None:
            # Nothing is transferred: what takes a batch out of shared memory makes pictures of it.
            return SharedBatchLoader(dataset, keys=PICTURES, copy=from_pixels, **how)
        return ErrorForwardingLoader(dataset, pin_memory=accelerator == "CUDAAccelerator", **how)


def data_module(settings: Train, split: Split | None = None) -> DistillData:
    """Training and validation pictures of recipe=distill, of a set that is there.

    `split` gives the photos of data=photos by their sides.
    """
    d, source = settings.data, data_source(settings)
    if settings.loss.weighed and (not source.regions or d.align):
        setting = "data.align=true" if d.align else f"data={d.kind}"
        raise DistillError(f"loss.region: {FOLDER_ONLY}, not with {setting}")
    sets = source.training_sets(split)
    return DistillData(sets.train, sets.val, d.batch_size, d.workers, d.val_limit, sets.pairs)


class LoaderData(pl.LightningDataModule):
    """Loaders of your own, each batch of which is checked: {photo, target} or (photo, target).

    These are floats (N, 3, H, W) and (N, 1, 3 or 4, H, W) in [0, 1], or uint8 (N, H, W, C); sides
    divide by 32. Photos alone, {photo} or a tensor, are for a teacher to label. `train` begins
    again at its end, and where a run resumes. Raises DistillError for another batch.

    >>> photo = torch.rand(2, 3, 64, 64)
    >>> data = distill.LoaderData([(photo, 1 - photo)], val=[(photo, 1 - photo)])
    """

    def __init__(self, train: Iterable[Any], val: Iterable[Any]) -> None:
        super().__init__()
        # Lightning takes a list for several loaders.
        self.train, self.val = (
            DataLoader(cast(Any, each), batch_size=None) if isinstance(each, list | tuple) else each
            for each in (train, val)
        )

    def train_dataloader(self) -> Iterable[Any]:
        return self.train

    def val_dataloader(self) -> Iterable[Any]:
        return self.val

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> dict[str, Any]:
        return _as_batch(batch)

    def check_first(self) -> None:
        """Raises DistillError where a loader has no batch, or a wrong one to begin with."""
        for name, loader in (("train", self.train), ("val", self.val)):
            first = next(iter(loader), None)
            if first is None:
                raise DistillError(f"{name}: the loader has no batch; want one at least")
            _as_batch(first)

    def first_batches(self, count: int) -> Iterator[dict[str, Any]]:
        """The first `count` batches, whatever has been trained."""
        return map(_as_batch, islice(chain.from_iterable(repeat(self.train)), count))


def _as_batch(batch: Any) -> dict[str, Any]:
    if not isinstance(batch, Mapping):
        parts = batch if isinstance(batch, list | tuple) else [batch]
        batch = dict(zip(("photo", "target"), parts, strict=False))
    stacks = {key: _checked(key, batch[key]) for key in ("photo", "target") if key in batch}
    photo = stacks.get("photo")
    if photo is None or any(each[:, 0].shape != photo[:, 0].shape for each in stacks.values()):
        shapes = ", ".join(f"{key} {tuple(each.shape)}" for key, each in stacks.items())
        raise DistillError(f"a batch: has {shapes or 'nothing'}; want photos and as many targets")
    return {"name": [f"picture {i}" for i in range(len(photo))], **batch, **stacks}


def _checked(key: str, pictures: Any) -> Tensor:
    if isinstance(pictures, Tensor) and pictures.dtype == torch.uint8:
        pictures = from_pixels(pictures)
    shape: Any = getattr(pictures, "shape", ())
    channels = tuple(MODES) if key == "target" else (3,)
    fits = len(shape) == 4 and shape[1] in channels and not any(side % 32 for side in shape[2:])
    if not (isinstance(pictures, Tensor) and pictures.is_floating_point() and fits):
        raise DistillError(
            f"a batch: {key} is {type(pictures).__name__} {tuple(shape)}, want float (N, 3, H, W) "
            "with sides that divide by 32, or uint8 (N, H, W, 3)"
        )
    low, high = pictures.aminmax()
    if not (low >= 0 and high <= 1):  # true for NaN too
        raise DistillError(f"a batch: {key} has values from {low:.4g} to {high:.4g}, want [0, 1]")
    return pictures.float()


TrainingData = DistillData | LoaderData


def _alike(samples: list[dict[str, Any]]) -> Any:
    """A batch, without what another shape's picture was replaced by, as it cannot be read."""
    shape = samples[0]["photo"].shape
    return default_collate([each for each in samples if each["photo"].shape == shape])
