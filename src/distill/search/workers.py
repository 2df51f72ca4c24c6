"""Several trials at once: processes of the same command that share one study."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from distill.core.errors import INTERRUPTED
from distill.core.process import die_with


def run(name: str, typed: Sequence[str], jobs: int, folder: Path) -> int:
    """Run `jobs` processes of `distill.NAME`, each with its share of the cores, to their end.

    What they say goes to FOLDER/worker-N.log. Ctrl-C and SIGTERM are handed on, so that each saves
    its run. Gives 0, or the exit status of one that did not end well.
    """
    words = [sys.executable, "-m", f"distill.{name}", *typed, "launcher.jobs=1"]
    own = {"OMP_NUM_THREADS": str(max(1, len(os.sched_getaffinity(0)) // jobs))}
    with ExitStack() as stack:
        started = []
        for number in range(1, jobs + 1):
            log = stack.enter_context((folder / f"worker-{number}.log").open("a"))
            print(f"worker {number} of {jobs}: {log.name}", flush=True)
            started.append(
                subprocess.Popen(
                    [*words, "launcher.report=false"],
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                    env={**os.environ, **own},
                    start_new_session=True,  # Ctrl-C comes here alone, and is handed on once
                    preexec_fn=partial(die_with, os.getpid()),
                )
            )
        return _end(started)


def _end(started: Sequence[subprocess.Popen[bytes]]) -> int:
    interrupted = False

    def hand_on(_number: int, _frame: object) -> None:
        nonlocal interrupted
        interrupted = True
        for process in started:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, hand_on) for number in numbers]
    try:
        codes = [process.wait() for process in started]
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    return INTERRUPTED if interrupted else next((abs(code) for code in codes if code), 0)
