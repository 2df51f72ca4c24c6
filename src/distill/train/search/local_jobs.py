"""Jobs of a sweep as processes of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from distill.config.multirun import Outcome
from distill.core.process import exit_with_parent
from distill.train.search.parallel_jobs import outcome_of


class LocalJobs:
    """Starts processes, of which `jobs` share the cores; they end with this one."""

    def __init__(self, jobs: int) -> None:
        self.threads = max(1, len(os.sched_getaffinity(0)) // jobs)

    def start(self, words: Sequence[str], log: Path) -> LocalJob:
        with log.open("a") as said:
            process = subprocess.Popen(
                words,
                stdout=said,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "OMP_NUM_THREADS": str(self.threads)},
                start_new_session=True,  # Ctrl-C comes to this one alone, and is handed on once
                preexec_fn=partial(exit_with_parent, os.getpid()),
            )
        return LocalJob(process, log)


class LocalJob:
    """One of them."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process, self.log = process, log

    def ended(self) -> Outcome | None:
        status = self.process.poll()
        return None if status is None else outcome_of(status, self.log)

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)  # does nothing where it has ended
