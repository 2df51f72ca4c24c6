"""The trials of a study, sequential or parallel, until there are enough of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from optuna.trial import Trial

from distill.config.settings.searching import Launcher
from distill.core.errors import INTERRUPTED
from distill.train.search.cost_limits import next_within
from distill.train.search.job_starters import starter_for
from distill.train.search.parallel_jobs import StartedJob, command, run_parallel
from distill.train.search.sampled_trial import copy_duplicate, run_trial, trial_label
from distill.train.search.trials import RUN, Trials


def run_sequential(task: Callable[[Any], None], trials: Trials) -> int:
    """Trials one after the other in this process; gives 0, or the status of an interrupted one."""
    next_trial = _trial_source(trials)
    while trial := next_trial():
        if run_trial(task, trials, trial) == INTERRUPTED:
            return INTERRUPTED
    return 0


def run_in_processes(name: str, trials: Trials, launcher: Launcher) -> int:
    """Trials in processes of their own; gives 0, or INTERRUPTED."""
    starter = starter_for(launcher, trials.folder)

    def start(trial: Trial) -> StartedJob:
        log = trials.folder / f"{trial.user_attrs[RUN]}.log"
        print(f"{trial_label(trials, trial)}: {log}", flush=True)
        return starter.start(command(name, trial.number), log)

    return run_parallel(launcher.jobs, _trial_source(trials), start, trials.process_ended)


def _trial_source(trials: Trials) -> Callable[[], Trial | None]:
    """A function that gives the next trial to run, None at the end of the search."""
    begun, limit = time.monotonic(), trials.search.timeout

    def next_trial() -> Trial | None:
        while limit is None or time.monotonic() - begun < limit:
            trial = next_within(trials)
            if trial is None or not copy_duplicate(trials, trial):
                return trial
        return None

    return next_trial
