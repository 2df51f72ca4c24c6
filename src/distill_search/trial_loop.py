"""The trials of a study, sequential or parallel, until there are enough of them."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytorch_lightning as pl
from optuna import TrialPruned
from optuna.trial import Trial, TrialState

from distill.config.multirun import attempt
from distill.config.settings.training import Training
from distill.core.errors import INTERRUPTED, DistillError, counted
from distill.models.build import untrained
from distill.runs.run_folder import Run
from distill_search.jobs import StaggeredStart, StartedJob, command, run_parallel, starter_for
from distill_search.objectives import MissingFigure, counted_costs, values
from distill_search.settings import Launcher, Search
from distill_search.sweeps import into
from distill_search.trials import RUN, Trials

ATTEMPTS = 200  # half a second each: with all outside, limits and space hardly meet


def run_sequential(task: Callable[..., None], trials: Trials) -> int:
    """Trials one after the other in this process; gives 0, or the status of an interrupted one."""
    next_trial = _trial_source(trials)
    while trial := next_trial():
        if run_trial(task, trials, trial) == INTERRUPTED:
            return INTERRUPTED
    return 0


def run_in_processes(name: str, trials: Trials, launcher: Launcher) -> int:
    """Trials in processes of their own; gives 0, or INTERRUPTED."""
    start_command = starter_for(launcher, trials.folder)

    def start(trial: Trial) -> StartedJob:
        log = trials.folder / f"{trial.user_attrs[RUN]}.log"
        print(f"{_label(trials, trial)}: {log}", flush=True)
        return start_command(command(name, trial.number), log)

    return run_parallel(launcher.jobs, _trial_source(trials), start, trials.process_ended)


def _trial_source(trials: Trials) -> Callable[[], Trial | None]:
    """A function that gives the next trial to run, None at the end of the search.

    One whose values were sampled before has the same figures, and is not run.
    """
    begun, limit = time.monotonic(), trials.search.timeout

    def next_trial() -> Trial | None:
        while limit is None or time.monotonic() - begun < limit:
            trial = next_within(trials)
            duplicate = trials.duplicate(trial) if trial else None
            if trial is None or duplicate is None:
                return trial
            trials.tell(trial, duplicate.values, copies=duplicate.number)
            same = f"same values as {duplicate.user_attrs[RUN]}"
            print(f"{_label(trials, trial)}: {same}", flush=True)
        return None

    return next_trial


def _label(trials: Trials, trial: Trial) -> str:
    """A trial's name and values, as people read them."""
    swept = trials.space.swept(trial.params).items()
    return f"{trial.user_attrs[RUN]}: {' '.join(f'{key}={value}' for key, value in swept)}"


def next_within(trials: Trials) -> Trial | None:
    """The next trial whose network is within the search's limits; None where there are enough.

    Raises DistillError where none is found in many attempts.
    """
    why: str | None = None
    space = trials.space
    beyond: set[tuple[str, ...]] = set()
    for _ in range(ATTEMPTS):
        if len(beyond) == space.count:
            break
        trial = trials.take()
        if trial is None:
            return None
        try:
            why = outside(trials.search, trials.job(trial).settings)
        except DistillError:  # values that do not go together: training says which
            return trial
        if why is None:
            return trial
        trials.tell(trial, TrialState.PRUNED, outside=why)  # counts for the sampler only
        beyond.add(tuple(space.typed(trial.params).values()))
    raise DistillError(
        f"search.most, search.least: not one of {counted(len(beyond), 'combination')} is within "
        f"them (the last: {why}); widen the limits or what is searched"
    )


def outside(search: Search, settings: Training) -> str | None:
    """Which cost of a run's network is beyond the search's limits, in words; None where none is.

    The network is built without weights and runs once, at the run's own resolution. Raises
    DistillError where it cannot be built.
    """
    if not search.limits():
        return None
    costs = counted_costs(untrained(settings).eval(), settings.side)
    for word, name, limit in search.limits():
        beyond = costs[name] > limit if word == "most" else costs[name] < limit
        if beyond:
            return f"{costs[name]:,.0f} {name}, at {word} {limit:,.0f}"
    return None


def run_trial(task: Callable[..., None], trials: Trials, trial: Trial) -> int:
    """Train, score and report one; gives the exit status that the run alone would have had.

    One that was interrupted is queued again.
    """
    print(_label(trials, trial), flush=True)
    run, objectives = Run(trials.folder / trial.user_attrs[RUN]), trials.search.objectives
    watch = TrialWatch(trial, objectives, run)

    def watched(settings: Training) -> None:
        with watch:
            task(settings, callbacks=[watch])

    try:
        outcome = attempt(watched, into(str(trials.folder), trials.job(trial), run.folder.name))
        if outcome.status == INTERRUPTED:
            trials.requeue(trial)
        elif watch.pruned:
            print(f"{run.folder}: pruned, it has fallen behind the other trials", flush=True)
            trials.tell(trial, TrialState.PRUNED)
        elif outcome.status:
            trials.tell(trial, TrialState.FAIL, reason=outcome.reason)
        else:
            trials.tell(trial, values(run, objectives))
    except DistillError as error:  # values that do not go together, or an objective that is not had
        trials.tell(trial, TrialState.FAIL, reason=str(error))
        if isinstance(error, MissingFigure):
            raise
        print(f"error: {error}", file=sys.stderr)
        return 1
    return outcome.status or 0


class TrialWatch(StaggeredStart):
    """Reports the validations of a trial's run to the study, by the first of its objectives.

    Ends a run that falls behind those of other trials. Of several objectives nothing is reported:
    Optuna prunes by a single one.
    """

    def __init__(self, trial: Trial, objectives: Sequence[str], run: Run) -> None:
        super().__init__(run.folder.parent)
        self.trial, self.run = trial, run
        self.column = f"val/{objectives[0]}" if len(objectives) == 1 else None
        self.pruned = False  # it was pruned, which is no error
        self._reported: set[int] = set()

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> bool:
        super().__exit__(kind, *error)
        self.pruned = kind is TrialPruned
        return self.pruned

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        super().on_train_start(trainer, pl_module)
        for row in self.run.validations():  # of a resumed run
            self._report(int(row["step"]), row)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._report(trainer.global_step, trainer.callback_metrics)
        if self.column and self.trial.should_prune():
            raise TrialPruned

    def _report(self, step: int, figures: Mapping[str, Any]) -> None:
        if self.column and self.column in figures and step not in self._reported:
            self._reported.add(step)
            self.trial.report(float(figures[self.column]), step)
