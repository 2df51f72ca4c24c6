"""The progress bar of every long job: lively on a terminal, rare lines in a log."""

from __future__ import annotations

import sys
from threading import RLock

from tqdm.auto import tqdm

# tqdm's own lock is shared with every forked process: one that is killed while its bar writes would
# leave all others waiting for ever.
tqdm.set_lock(RLock())


def bar(total: int | None, unit: str, what: str, leave: bool = True, bytes_: bool = False) -> tqdm:
    """A tqdm bar with rate and time left; in a file it writes a line every 20 seconds."""
    return tqdm(
        total=total,
        unit=unit,
        desc=what,
        leave=leave,
        unit_scale=bytes_,
        unit_divisor=1024 if bytes_ else 1000,
        mininterval=0.2 if sys.stderr.isatty() else 20,
        dynamic_ncols=True,
    )
