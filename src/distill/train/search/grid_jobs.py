"""The jobs of a grid where each has a process of its own."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from distill.config.multirun import Job, Outcome, attempt
from distill.config.settings.searching import Launcher
from distill.core.errors import INTERRUPTED
from distill.train.callbacks.observers import observed_by
from distill.train.search.job_starters import starter_for
from distill.train.search.parallel_jobs import StartedJob, command, run_parallel
from distill.train.search.staggered_start import StaggeredStart


def run_one(task: Callable[[Any], None], job: Job) -> int:
    """One job of a grid, in a process that another one started; gives its exit status."""
    start = StaggeredStart(Path(job.settings.runs))

    def held(settings: Any) -> None:
        with start, observed_by(start):
            task(settings)

    return attempt(held, job).status or 0


def run_in_processes(name: str, launcher: Launcher, jobs: Sequence[Job]) -> list[Outcome]:
    """All jobs of a grid, each in a process of its own; gives what became of them."""
    folder = Path(jobs[0].settings.runs)
    folder.mkdir(parents=True, exist_ok=True)
    starter = starter_for(launcher, folder)
    waiting, outcomes = deque(range(len(jobs))), [Outcome()] * len(jobs)

    def start(i: int) -> StartedJob:
        log = folder / f"{jobs[i].name}.log"
        print(f"[{i + 1}/{len(jobs)}] {jobs[i].name}: {log}", flush=True)
        return starter.start(command(name, i), log)

    def ended(i: int, outcome: Outcome) -> None:
        outcomes[i] = outcome
        if outcome.status == INTERRUPTED:  # by its cluster: it resumes
            waiting.appendleft(i)
        elif outcome.status:
            print(f"error: {jobs[i].name}: {outcome.reason}", file=sys.stderr, flush=True)

    run_parallel(launcher.jobs, lambda: waiting.popleft() if waiting else None, start, ended)
    return outcomes
