"""`distill.train` itself, in this process, with somebody who looks at every step."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.profilers import Profiler

from distill.train import __main__ as train
from distill.train import student_training

TAIL = 5  # batches after the last that counts: workers at the end of their work leave more time


class Stamps(pl.Callback):
    """When each step had ended, with all that other callbacks do after it."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_train_batch_end(self, *_args: object) -> None:
        self.seconds.append(time.perf_counter())

    def of(self, warm: int, steps: int) -> float:
        """Seconds of `steps` steps after the first `warm`."""
        return self.seconds[warm + steps - 1] - self.seconds[warm - 1]


def cpu_of(process: int) -> float:
    """CPU seconds that another process has taken (Linux; see proc(5), utime and stime)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def train_for(
    steps: int, words: Sequence[str], watch: pl.Callback, profiler: Profiler | None = None
) -> None:
    """`steps` steps of the real command, one validation at the end; what it writes is deleted."""
    make = student_training.make_trainer

    def watched(*given: Any, **named: Any) -> pl.Trainer:
        made = make(*given, **named)
        made.callbacks.append(watch)  # type: ignore[attr-defined]
        if profiler:
            made.profiler = profiler  # type: ignore[attr-defined]
        return made

    student_training.make_trainer = watched
    with tempfile.TemporaryDirectory() as runs:
        sys.argv = ["train", *words, f"runs={runs}"]
        sys.argv += [f"trainer.max_steps={steps}", f"trainer.val_every={steps}"]
        train.main()
