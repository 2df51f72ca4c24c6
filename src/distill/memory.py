"""Memory that one step frees is kept for the next."""

from __future__ import annotations

import ctypes
import os
import sys

# From glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8
KEPT = 2**31 - 1  # bytes of free memory to hold on to, the most that can be named


def keep_freed() -> None:
    """Have glibc keep large blocks when they are freed; elsewhere nothing changes.

    Left alone it gives them back to the system, which maps and clears every page of them anew at
    the next step, one at a time: a third of a training step on a CPU (benchmarks/training.py). No
    value changes. Whoever sets MALLOC_… variables is left to it.
    """
    if sys.platform != "linux" or any(name.startswith("MALLOC_") for name in os.environ):
        return
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, KEPT)
        mallopt(M_ARENA_MAX, 1)  # other threads' own arenas would go on as before
