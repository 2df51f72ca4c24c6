"""Networks on all cores without waiting for each other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def side_by_side(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """The results of `work` in order, by as many threads as torch uses, each item on one of them.

    Threads that share a convolution meet at its end and wait for the slowest. That takes twice as
    long as this where other programs use the cores too; on idle cores both take the same.
    Meanwhile the caller's thread makes the next items, and few of them wait.
    """
    count = torch.get_num_threads()
    waiting: deque[Future[Result]] = deque()
    try:
        with ThreadPoolExecutor(count, "work", torch.set_num_threads, (1,)) as pool:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > 2 * count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
    finally:
        torch.set_num_threads(count)  # a worker's setting reaches parts of the whole process
