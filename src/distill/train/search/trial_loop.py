"""The trials of a study, one after the other or side by side, until there are enough of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from optuna.trial import Trial

from distill.config.settings.searching import Launcher
from distill.core.errors import INTERRUPTED
from distill.train.search.cost_limits import next_within
from distill.train.search.drawn_trial import carry_out, copied, said
from distill.train.search.job_starters import starter_of
from distill.train.search.side_by_side import StartedJob, command, side_by_side
from distill.train.search.trials import RUN, Trials

Draw = Callable[[], Trial | None]


def in_turn(task: Callable[[Any], None], trials: Trials) -> int:
    """Trial after trial in this process; gives 0, or the status of one that was interrupted."""
    draw = _drawn(trials)
    while trial := draw():
        if carry_out(task, trials, trial) == INTERRUPTED:
            return INTERRUPTED
    return 0


def at_once(name: str, trials: Trials, launcher: Launcher) -> int:
    """Trials in processes of their own; gives 0, or INTERRUPTED."""
    starter = starter_of(launcher, trials.folder)

    def start(trial: Trial) -> StartedJob:
        log = trials.folder / f"{trial.user_attrs[RUN]}.log"
        print(f"{said(trials, trial)}: {log}", flush=True)
        return starter.start(command(name, trial.number), log)

    return side_by_side(launcher.jobs, _drawn(trials), start, trials.left)


def _drawn(trials: Trials) -> Draw:
    """What gives the next trial to carry out, None where there are enough or the time is up."""
    begun, limit = time.monotonic(), trials.search.timeout

    def draw() -> Trial | None:
        while limit is None or time.monotonic() - begun < limit:
            trial = next_within(trials)
            if trial is None or not copied(trials, trial):
                return trial
        return None

    return draw
