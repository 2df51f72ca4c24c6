"""Processes that load pictures."""

from __future__ import annotations

import os
import signal

LOWEST = 19  # priority of a process, as `nice` counts it


def ignore_interrupt(_worker: int) -> None:
    """Ctrl-C reaches every process of a terminal; only the main one shall decide what it means."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def give_way(worker: int) -> None:
    """Beside a network on the CPU: load where that leaves a core idle.

    Its threads wait for each other, so one that loses its core for a while holds up all.
    """
    ignore_interrupt(worker)
    if hasattr(os, "nice"):
        os.nice(LOWEST)
