"""One trial of a study: trained in its folder, scored and reported."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from optuna.trial import Trial

from distill.config.multirun import attempt
from distill.core.errors import INTERRUPTED, DistillError
from distill.runs.run_folder import Run
from distill.train.callbacks.observers import observed_by
from distill.train.search.objectives import values
from distill.train.search.pruning import TrialWatch
from distill.train.search.sweep import into
from distill.train.search.trials import RUN, Trials

Task = Callable[[Any], None]


def copy_duplicate(trials: Trials, trial: Trial) -> bool:
    """Whether its values were sampled before: it then has the same figures, and is not trained."""
    duplicate = trials.duplicate(trial)
    if duplicate is None:
        return False
    trials.copy(trial, duplicate)
    print(f"{trial_label(trials, trial)}: same values as {duplicate.user_attrs[RUN]}", flush=True)
    return True


def run_trial(task: Task, trials: Trials, trial: Trial) -> int:
    """Train, score and report one; gives the exit status that the run alone would have had.

    One that was interrupted is queued again.
    """
    print(trial_label(trials, trial), flush=True)
    run, objectives = Run(trials.folder / trial.user_attrs[RUN]), trials.search.objectives
    watch = TrialWatch(trial, objectives, run)

    def watched(settings: Any) -> None:
        with watch, observed_by(watch):
            task(settings)

    try:
        job = into(
            str(trials.folder), trials.space.make(trials.space.typed(trial.params)), run.folder.name
        )
        outcome = attempt(watched, job)
        if outcome.status == INTERRUPTED:
            trials.requeue(trial)
        elif watch.pruned:
            print(f"{run.folder}: pruned, it has fallen behind the other trials", flush=True)
            trials.prune(trial)
        elif outcome.status:
            trials.fail(trial, outcome.reason)
        else:
            trials.tell(trial, values(run, objectives))
    except DistillError as error:  # values that do not go together, or an objective that is not had
        print(f"error: {error}", file=sys.stderr)
        trials.fail(trial, str(error))
        return 1
    return outcome.status or 0


def trial_label(trials: Trials, trial: Trial) -> str:
    """A trial's name and values, as people read them."""
    swept = trials.space.swept(trial.params).items()
    return f"{trial.user_attrs[RUN]}: {' '.join(f'{key}={value}' for key, value in swept)}"
