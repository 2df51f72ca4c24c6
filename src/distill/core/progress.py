"""The progress bar of every long job: lively on a terminal, rare lines in a log."""

import sys
from collections.abc import Callable, Iterable, Iterator
from threading import RLock
from typing import Any, TypeVar

from tqdm import tqdm

# tqdm's own lock is shared with every forked process: one that is killed while its bar writes would
# leave all others waiting for ever.
tqdm.set_lock(RLock())

Item = TypeVar("Item")
SECONDS = 20  # from line to line in a log
LINE = "{desc}: {percentage:.0f}% {n_fmt}/{total_fmt} [{elapsed}<{remaining}, {rate_fmt}{postfix}]"


class Lines(tqdm):
    """A bar that adds line to line, for a file or a pipe: what is written there stays."""

    delay: float  # seconds before the first line

    def display(self, msg: str | None = None, pos: int | None = None) -> bool:
        text = str(self) if msg is None else msg
        if text:
            self.fp.write(f"{text.strip()}\n")
            self.fp.flush()
        return True

    def clear(self, nolock: bool = False) -> None:
        """Nothing: a line is not taken back for what others write."""

    def refresh(self, nolock: bool = False, lock_args: Any = None) -> bool:
        """Nothing after what others wrote (by tqdm.write, which holds the lock): no progress."""
        return not nolock and bool(super().refresh(nolock, lock_args))

    def close(self) -> None:
        """The last line, of a bar that stays and has shown one: a short job says nothing here."""
        shown = not self.disable and self.last_print_t >= self.start_t + self.delay
        last = str(self) if shown and self.leave else ""
        self.delay = float("inf")  # nothing is left for the library to clear
        super().close()
        self.display(last)


def bar(total: int | None, unit: str, what: str, leave: bool = True, bytes_: bool = False) -> tqdm:
    """A tqdm bar with rate and time left; in a file it writes a line every 20 seconds.

    `unit` in the singular: the rate is 1.5s/step or 3.2step/s.
    """
    notebook = "ipykernel" in sys.modules
    log = not sys.stderr.isatty() and not notebook
    lines = {"mininterval": SECONDS, "delay": SECONDS} | ({"bar_format": LINE} if total else {})
    if notebook:
        from tqdm.auto import tqdm as lively  # imports asyncio
    else:
        lively = tqdm
    return (Lines if log else lively)(
        total=total,
        unit=unit,
        desc=what,
        leave=leave,
        unit_scale=bytes_,
        unit_divisor=1024 if bytes_ else 1000,
        **(lines if log else {"mininterval": 0.2, "dynamic_ncols": True}),
    )


def track(
    items: Iterable[Item],
    total: int,
    unit: str,
    what: str,
    size: Callable[[Item], int] = lambda _: 1,
) -> Iterator[Item]:
    """The items, under a bar that does not stay; `size` is how many of `total` are in one.

    The bar closes with the loop, however that ends, where nothing else holds the iterator.
    """
    with bar(total, unit, what, leave=False) as progress:
        for item in items:
            yield item
            progress.update(size(item))
