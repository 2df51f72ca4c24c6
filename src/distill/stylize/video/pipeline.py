"""Steps that run at the same time, each in a thread of its own, so that the slowest sets the pace.

FFmpeg and ONNX Runtime let go of Python's lock while they work, so threads are enough.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

DEPTH = 12  # items on their way: enough against hiccups; a 4K picture is 25 MB
_END = object()


class Pipeline:
    """What `source` yields, through every step in turn and in order; a step maps one item to one.

        with Pipeline(source, [stylise, smooth]) as items:
            for item in items: ...

    At most `depth` items are on their way to the caller. Leaving the block, for whatever reason,
    stops all threads. What a step or the source raises is raised to the caller, after the items
    before it. `busy` holds the seconds that the source and each step have worked, without their
    waiting.
    """

    def __init__(
        self, source: Iterable[Any], steps: Sequence[Callable[[Any], Any]], depth: int = DEPTH
    ) -> None:
        items = iter(source)
        self._steps = [lambda _: next(items, _END), *steps]
        self._threads = [ThreadPoolExecutor(1) for _ in self._steps]
        self._depth, self.busy = depth, [0.0] * len(self._steps)

    def __enter__(self) -> Iterator[Any]:
        return self._items()

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.shutdown(wait=False, cancel_futures=True)
        for thread in self._threads:
            thread.shutdown()

    def _items(self) -> Iterator[Any]:
        coming: deque[Future[Any]] = deque()
        while True:
            while len(coming) < self._depth:
                item: Future[Any] | None = None
                for number, thread in enumerate(self._threads):
                    item = thread.submit(self._work, number, item)
                assert item is not None
                coming.append(item)
            if (done := coming.popleft().result()) is _END:
                return
            yield done

    def _work(self, number: int, before: Future[Any] | None) -> Any:
        item = before.result() if before else None
        if item is _END:
            return item
        start = time.perf_counter()
        try:
            return self._steps[number](item)
        finally:
            self.busy[number] += time.perf_counter() - start
