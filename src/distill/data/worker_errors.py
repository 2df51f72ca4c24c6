"""Errors of loading workers, raised unchanged in the main process.

torch hands on an error's traceback as the text of another one: no line for a user, and an OSError
without its number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from torch.utils.data import DataLoader, Dataset, default_collate, default_convert

from distill.core.errors import DistillError

Collate = Callable[[list[Any]], Any]


class ErrorForwardingLoader(DataLoader):
    """A DataLoader that raises its workers' DistillErrors, and the system's errors, unchanged.

    Anything else is a bug, of which torch's traceback tells more.
    """

    def __init__(
        self,
        dataset: Dataset,
        batch_size: int | None,
        num_workers: int = 0,
        collate_fn: Collate | None = None,
        **more: Any,
    ) -> None:
        if num_workers:
            dataset = _ErrorForwardingDataset(dataset)
            usual = default_convert if batch_size is None else default_collate
            collate_fn = partial(_without_errors, collate_fn or usual)
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
        except DistillError as error:
            return error
        except OSError as error:
            if error.errno is None:  # a library's own
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
