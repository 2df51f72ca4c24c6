"""Steps that run at the same time, each in a thread of its own, so that the slowest sets the pace.

FFmpeg and ONNX Runtime let go of Python's lock while they work, so threads are enough.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Any

DEPTH = 4  # items that wait before a step: enough against hiccups; a 4K picture is 25 MB


class Closed(Exception):
    """Nobody waits for more: the pipeline ends."""


class Queue:
    """A bounded first-in-first-out queue that can be closed, which wakes up everybody."""

    def __init__(self, depth: int) -> None:
        self._items: deque[Any] = deque()
        self._depth, self._closed, self._changed = depth, False, Condition()

    def put(self, item: Any) -> None:
        """Waits for room. Raises Closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._items) < self._depth)
            if self._closed:
                raise Closed
            self._items.append(item)
            self._changed.notify_all()

    def get(self) -> Any:
        """Waits for an item. Raises Closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or bool(self._items))
            if self._closed:
                raise Closed
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    def close(self) -> None:
        """Drops what is in it; every `put` and `get` raises Closed from now on."""
        with self._changed:
            self._closed = True
            self._items.clear()
            self._changed.notify_all()


class Pipeline:
    """What `source` yields, through every step in turn and in order; a step maps one item to one.

        with Pipeline(source, [stylise, smooth]) as items:
            for item in items: ...

    At most `depth` items wait before each step and before the caller. Leaving the block, for
    whatever reason, stops all threads. What a step or the source raises is raised to the caller,
    after the items before it. `busy` holds the seconds that the source and each step have worked,
    without their waiting.
    """

    def __init__(
        self, source: Iterable[Any], steps: Sequence[Callable[[Any], Any]], depth: int = DEPTH
    ) -> None:
        self.busy = [0.0] * (1 + len(steps))
        self._queues = [Queue(depth) for _ in self.busy]
        workers = [self._timed(0, iter(source))]
        for number, step in enumerate(steps, 1):
            workers.append(self._stepping(number, step, self._queues[number - 1]))
        self._threads = [
            Thread(target=_feed, args=pair, daemon=True)
            for pair in zip(workers, self._queues, strict=True)
        ]

    def __enter__(self) -> Iterator[Any]:
        for thread in self._threads:
            thread.start()
        return _drain(self._queues[-1])

    def __exit__(self, *_: object) -> None:
        for queue in self._queues:
            queue.close()
        for thread in self._threads:
            thread.join()

    def _timed(self, number: int, source: Iterator[Any]) -> Iterator[Any]:
        while True:
            start = time.perf_counter()
            try:
                item = next(source)
            except StopIteration:
                return
            finally:
                self.busy[number] += time.perf_counter() - start
            yield item

    def _stepping(self, number: int, step: Callable[[Any], Any], queue: Queue) -> Iterator[Any]:
        for item in _drain(queue):
            start = time.perf_counter()
            try:
                done = step(item)
            finally:
                self.busy[number] += time.perf_counter() - start
            yield done


@dataclass(frozen=True)
class _End:
    """Behind the last item; with the error that ended it, if one did."""

    error: BaseException | None = None


def _feed(worker: Iterator[Any], queue: Queue) -> None:
    """A thread's whole work."""
    end = _End()
    try:
        for item in worker:
            queue.put(item)
    except Closed:
        return
    except BaseException as error:  # it belongs to the caller, whatever it is
        end = _End(error)
    with suppress(Closed):
        queue.put(end)


def _drain(queue: Queue) -> Iterator[Any]:
    while not isinstance(item := queue.get(), _End):
        yield item
    if item.error is not None:
        raise item.error
