"""DataLoaders whose workers' errors come unchanged, and whose batches lie in shared memory.

torch hands on an error's traceback as the text of another one: no line for a user, and an OSError
without its number. And it makes new shared memory for every tensor of every batch: its pages are
cleared, mapped in both processes and given back, and its handle is asked for through a socket, for
which the main process waits until the other one, of the lowest priority, is let run."""

import math
import shutil
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import (
    DataLoader,
    Dataset,
    Sampler,
    default_collate,
    default_convert,
    get_worker_info,
)

from distill.core.errors import DistillError
from distill.core.process import worker_init_fn

Collate = Callable[[list[Any]], Any]


class ErrorForwardingLoader(DataLoader):
    """A DataLoader that raises its workers' DistillErrors, and the system's errors, unchanged.

    Anything else is a bug, of which torch's traceback tells more. `low_priority` is that of
    `worker_init_fn`.
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int | None,
        num_workers: int = 0,
        collate_fn: Collate | None = None,
        low_priority: bool = False,
        **more: Any,
    ) -> None:
        if num_workers:
            more["worker_init_fn"] = worker_init_fn(low_priority)
            dataset = _ErrorForwardingDataset(dataset)
            usual = default_convert if batch_size is None else default_collate
            collate_fn = partial(_without_errors, collate_fn or usual)
        with warnings.catch_warnings():  # of few cores: one process reads while the other computes
            warnings.filterwarnings("ignore", message=".*worker processes in total.*")
            super().__init__(
                dataset, batch_size, num_workers=num_workers, collate_fn=collate_fn, **more
            )

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        for batch in super().__iter__():
            if isinstance(batch, Exception):
                raise batch
            yield batch


class _ErrorForwardingDataset(Dataset):
    """Gives an error where `dataset` raises one."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset: Any = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        try:
            return self.dataset[index]
        except (DistillError, OSError) as error:
            if isinstance(error, OSError) and error.errno is None:  # a library's own
                raise
            return error


class Mapped(Dataset):
    """What a function gives for each of these items."""

    def __init__(self, fn: Callable[[Any], Any], items: Sequence[Any]) -> None:
        self.fn, self.items = fn, items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.fn(self.items[index])


def _without_errors(collate: Collate, samples: Any) -> Any:
    """The batch; the first error among the samples where there is one."""
    several: Sequence[Any] = samples if isinstance(samples, list) else [samples]
    return next((each for each in several if isinstance(each, Exception)), None) or collate(samples)


SHARED = Path("/dev/shm")  # Linux's shared memory
AHEAD = 2  # batches that are asked of each process before they are needed


@dataclass(frozen=True)
class Placed:
    """A batch whose tensors lie in a place of the shared memory; `rest` is what else it has."""

    worker: int
    place: int
    rest: Mapping[str, Any]


class SharedBatches:
    """Shared memory for tensors of the batches of `workers` processes, all as large as `sample`.

    Each process has a place more than batches that may be asked of it, and fills them in turn: what
    lies in a place stays until the main process asks for the next batch. Raises DistillError where
    the system has too little shared memory.
    """

    def __init__(
        self, sample: Mapping[str, Any], keys: Collection[str], batch: int, workers: int
    ) -> None:
        self.places = AHEAD + 1
        tensors: dict[str, Tensor] = {key: sample[key] for key in sample if key in keys}
        before = (workers, self.places, batch)
        needed = math.prod(before) * sum(each.nbytes for each in tensors.values())
        free = shutil.disk_usage(SHARED).free if SHARED.is_dir() else needed
        if free < needed:  # writing more than there is would end the process without a word
            raise DistillError(
                f"data.workers={workers}: their batches need {needed / 1e6:.0f} MB of shared "
                f"memory, and {SHARED} has {free / 1e6:.0f} free; give it more (docker run "
                "--shm-size=1g), take smaller batches or fewer workers, or set data.workers=0"
            )
        self.memory = {
            key: torch.empty((*before, *each.shape), dtype=each.dtype).share_memory_()
            for key, each in tensors.items()
        }
        self._filled = 0  # of this process

    def collate(self, samples: list[Mapping[str, Any]]) -> Placed | Any:
        """The samples of a batch put into the next place of this loading process.

        Where they do not fit, as a last, smaller batch, they are a batch as usual.
        """
        worker = get_worker_info()
        fits = all(
            len(samples) == memory.shape[2]
            and all(each[key].shape == memory.shape[3:] for each in samples)
            and samples[0][key].dtype == memory.dtype
            for key, memory in self.memory.items()
        )
        if worker is None or not fits:
            return default_collate(samples)
        place = self._filled % self.places
        self._filled += 1
        for key, memory in self.memory.items():
            for row, sample in zip(memory[worker.id, place], samples, strict=True):
                row.copy_(sample[key])
        rest = [{k: v for k, v in each.items() if k not in self.memory} for each in samples]
        return Placed(worker.id, place, default_collate(rest))

    def received(self, batch: Placed, copy: Callable[[Tensor], Tensor]) -> dict[str, Any]:
        """The batch in memory of its own, its tensors as `copy` makes them."""
        tensors = {k: copy(m[batch.worker, batch.place]) for k, m in self.memory.items()}
        return {**batch.rest, **tensors}


class SharedBatchLoader(ErrorForwardingLoader):
    """A loader of samples of one size, whose tensors of these `keys` go through shared memory.

    `copy` takes a batch's out of it: it gives a new tensor of what it is given.
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int,
        num_workers: int,
        sampler: Sampler[int],
        keys: Collection[str],
        copy: Callable[[Tensor], Tensor],
        **more: Any,
    ) -> None:
        self.copy = copy
        first = dataset[next(iter(sampler))]
        self.shared = SharedBatches(first, keys, batch_size, num_workers)
        super().__init__(
            dataset,
            batch_size,
            num_workers,
            self.shared.collate,
            sampler=sampler,
            prefetch_factor=AHEAD,
            **more,
        )

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        batches: Iterable[Any] = super().__iter__()
        for batch in batches:
            yield self.shared.received(batch, self.copy) if isinstance(batch, Placed) else batch
