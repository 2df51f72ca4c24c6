"""The jobs of a sweep: all of a grid, or those that a study samples."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from distill.config import multirun
from distill.config.multirun import Job, Space
from distill.config.settings.searching import Search, Searching
from distill.config.settings.training import Training
from distill.core.errors import DistillError
from distill.train.search.sweep import SweepFolders, sweep_folder

Task = Callable[[Training], None]


@dataclass(frozen=True)
class StudySweep(SweepFolders):
    """A sweep that also runs its jobs elsewhere, or has a study of Optuna choose them, in
    RUNS/sweep-NAME/trial-NUMBER/.
    """

    searches: ClassVar[bool] = True

    def grid(self, name: str, task: Task, jobs: Sequence[Job], asked: Searching) -> None:
        launcher = asked.launcher
        if launcher.only is None and launcher.sequential:
            multirun.run(task, jobs, self, report=launcher.report)
            return
        from distill.train.search import jobs as processes

        if launcher.only is not None:
            sys.exit(processes.run_one(task, self.place(jobs)[0]))
        run_all = partial(processes.run_in_processes, name, launcher)
        multirun.run(task, jobs, self, run_all, launcher.report)

    def search(self, name: str, task: Task, space: Space, asked: Searching) -> None:
        if find_spec("optuna") is None:
            raise DistillError("search=optuna needs Optuna: pip install 'distill[search]'")
        from distill.train.search import front, trial_loop
        from distill.train.search.trials import Trials

        search, launcher = asked.search, asked.launcher
        assert search is not None
        probe = space.make(next(space.probes()))
        _check(search, probe.settings)
        folder = Path(sweep_folder(probe))
        steps = probe.settings.trainer
        longest = steps.max_steps or steps.val_every  # of a run in epochs nobody knows it yet
        trials = Trials(search, folder, space, longest, min(steps.val_every, longest))
        if launcher.only is not None:
            sys.exit(trial_loop.run_trial(task, trials, trials.running(launcher.only)))
        if launcher.sequential:
            status = trial_loop.run_sequential(task, trials)
        else:
            status = trial_loop.run_in_processes(name, trials, launcher)
        if launcher.report:
            front.report(trials, probe)
        if status:
            sys.exit(status)


def _check(search: Search, settings: Training) -> None:
    """Raises DistillError for a search that cannot do what it is told."""
    if search.pruner != "none" and len(search.objectives) > 1:
        raise DistillError(
            f"search.pruner={search.pruner}: compares by one objective; name one, or leave it out"
        )
    if search.pruner != "none" and settings.trainer.devices != 1:
        raise DistillError(
            f"search.pruner={search.pruner}: a trial in several processes cannot be pruned; "
            "set trainer.devices=1 or leave it out"
        )
