"""`distill.train` up to its first step and some further ones, as a process that does nothing else.

    python benchmarks/first_step.py STEPS WORDS...

prints as JSON when the first step had `ended` (seconds since 1970), the `cpu` seconds that the main
process had taken by then, and the most memory of all steps in MiB. `main` and `worker` are the
resident memory of the main process and of the largest loading process; what processes share is
counted in each of them, but once in `together` (Linux only).
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import threading
import time
from pathlib import Path

import distill  # noqa: F401  first, as python -m distill.train has it

# isort: split
import pytorch_lightning as pl
from watched import train_for


class Watch(pl.Callback):
    """Notes when the first step has ended, and the memory of this process and its workers."""

    def __init__(self) -> None:
        self.ended = self.cpu = 0.0
        self.main = self.worker = self.together = 0

    def on_train_batch_end(self, *_args: object) -> None:
        if not self.ended:
            self.ended, self.cpu = time.time(), time.process_time()

    def watch(self) -> None:
        """Look again and again, as long as the process lives."""
        while True:
            workers = [child.pid for child in multiprocessing.active_children() if child.pid]
            own, *theirs = (_memory(pid) for pid in (os.getpid(), *workers))
            self.main = max(self.main, own.get("Rss", 0))
            self.worker = max([self.worker, *(each.get("Rss", 0) for each in theirs)])
            together = own.get("Pss", 0) + sum(each.get("Pss", 0) for each in theirs)
            self.together = max(self.together, together)
            time.sleep(0.2)


def _memory(pid: int) -> dict[str, int]:
    """Resident (Rss) and proportional (Pss) memory in MiB; empty where it cannot be read."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return {}
    return {line.split(":")[0]: int(line.split()[1]) >> 10 for line in lines if "ss:" in line}


def main() -> None:
    watch = Watch()
    threading.Thread(target=watch.watch, daemon=True).start()
    train_for(int(sys.argv[1]), sys.argv[2:], watch)
    names = ("ended", "cpu", "main", "worker", "together")
    print(json.dumps({name: getattr(watch, name) for name in names}))


if __name__ == "__main__":
    main()
