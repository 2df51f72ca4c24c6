"""What carries out work that falls into parts: this process, or the workers of a cluster."""

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

Part = TypeVar("Part")
Lease = TypeVar("Lease")
Result = TypeVar("Result")


class Engine(AbstractContextManager["Engine"]):
    """`threads` is how many a part of `map` may use, `no_folder` what is said where it is to label
    a folder of pairs, which `Here` does alone."""

    threads: int = 1
    no_folder: str = "labels sets of other data= alone; choose one, or leave engine= out"

    def __exit__(self, *_: object) -> None:
        return None  # what is held from `with` on is let go

    @abstractmethod
    def map(self, fn: Callable[[Part], Result], parts: Iterable[Part]) -> Iterator[Result]:
        """What `fn`, a function of a module, gives for each part, in their order."""

    @abstractmethod
    def run(
        self, worker: Callable[[Lease], Result], leases: Sequence[Lease], device: str
    ) -> Iterator[tuple[Lease, Result]]:
        """Each lease and what a worker made of it on a `device` of its own, as they are done.

        Every worker is a copy of `worker` that lives on from lease to lease. A lease may be carried
        out more than once, by a worker that was taken for lost: it publishes whole or not at all.
        """

    @abstractmethod
    def device(self, asked: str) -> str:
        """What a worker computes on: cpu, cuda or mps; `asked` may be auto."""


class Here(Engine):
    """This process, one after the other."""

    threads = os.cpu_count() or 1

    def map(self, fn: Callable[[Part], Result], parts: Iterable[Part]) -> Iterator[Result]:
        return map(fn, parts)

    def run(
        self, worker: Callable[[Lease], Result], leases: Sequence[Lease], device: str
    ) -> Iterator[tuple[Lease, Result]]:
        return ((lease, worker(lease)) for lease in leases)

    def device(self, asked: str) -> str:
        if asked != "auto":
            return asked
        import torch  # workers of a cluster start without it

        return "cuda" if torch.cuda.is_available() else "cpu"


HERE = Here()
