"""Processes that load pictures."""

from __future__ import annotations

import signal


def ignore_interrupt(_worker: int) -> None:
    """Ctrl-C reaches every process of a terminal; only the main one shall decide what it means."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
