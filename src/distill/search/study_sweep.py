"""The runs of a search: drawn, trained, judged, until there are enough of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from filelock import FileLock

from distill.config.multirun import Outcome, attempt
from distill.config.search_space import Space
from distill.config.settings.searching import Searching
from distill.core.errors import INTERRUPTED, DistillError
from distill.runs.sweep import SweepFolders, into, sweep_folder

if TYPE_CHECKING:
    from optuna.trial import Trial

    from distill.search.trials import Trials

Task = Callable[[Any], None]


@dataclass(frozen=True)
class StudySweep(SweepFolders):
    """A sweep whose jobs a study of Optuna chooses, in RUNS/sweep-NAME/trial-NUMBER/."""

    searches: ClassVar[bool] = True

    def search(self, name: str, task: Task, space: Space, asked: Searching) -> None:
        if find_spec("optuna") is None:
            raise DistillError("search=optuna needs Optuna: pip install 'distill[search]'")
        from distill.search import front, workers
        from distill.search.trials import Trials

        probe = space.make(next(space.probes()))
        _check(asked, probe.settings)
        folder = Path(sweep_folder(probe))
        steps = probe.settings.trainer
        longest = steps.max_steps or steps.val_every  # of a run in epochs nobody knows it yet
        trials = Trials(asked.search, folder, space, longest, min(steps.val_every, longest))
        if asked.launcher.jobs > 1:
            status = workers.run(name, sys.argv[1:], asked.launcher.jobs, folder)
        else:
            status = _work(task, trials)
        if asked.launcher.report:
            front.report(trials, probe)
        if status:
            sys.exit(status)


def _check(asked: Searching, settings: Any) -> None:
    """Raises DistillError for a search that cannot do what it is told."""
    search = asked.search
    if search.pruner != "none" and len(search.objectives) > 1:
        raise DistillError(
            f"search.pruner={search.pruner}: compares by one objective; name one, or leave it out"
        )
    if search.pruner != "none" and settings.trainer.devices != 1:
        raise DistillError(
            f"search.pruner={search.pruner}: a trial in several processes cannot be cut short; "
            "set trainer.devices=1 or leave it out"
        )


def _work(task: Task, trials: Trials) -> int:
    """Trial after trial in this process; gives 0, or the status of one that was interrupted."""
    begun, limit = time.monotonic(), trials.search.timeout
    while limit is None or time.monotonic() - begun < limit:
        trial = trials.take()
        if trial is None:
            break
        if _try(task, trials, trial) == INTERRUPTED:
            return INTERRUPTED
    return 0


def _try(task: Task, trials: Trials, trial: Trial) -> int | None:
    """Train and judge one; gives the exit status that the run alone would have had."""
    from distill.runs.run_folder import Run
    from distill.search.objectives import values
    from distill.search.pruning import CutShort, TrialWatch
    from distill.search.trials import COPIES, REASON, RUN
    from distill.training.callbacks.watched import watched_by

    name, space, search = trial.user_attrs[RUN], trials.space, trials.search
    said = " ".join(f"{key}={value}" for key, value in space.swept(trial.params).items())
    if twin := trials.twin(trial):
        trial.set_user_attr(COPIES, twin.number)
        trials.tell(trial, list(twin.values))
        print(f"{name}: {said}: drawn before, as {twin.user_attrs[RUN]}", flush=True)
        return 0
    print(f"{name}: {said}", flush=True)
    cut = False
    try:
        job = into(str(trials.folder), space.make(space.typed(trial.params)), name)
    except DistillError as error:  # values that do not go together
        outcome = Outcome(1, str(error))
        print(f"error: {error}", file=sys.stderr)
    else:
        run = Run(trials.folder / name)
        names: list[str] = list(search.objectives)
        watch = TrialWatch(trial, names, run, FileLock(trials.folder / ".start.lock"))

        def watched(settings: Any) -> None:
            nonlocal cut
            try:
                with watch, watched_by(watch):
                    task(settings)
            except CutShort:
                cut = True

        outcome = attempt(watched, job)
    found = None
    if outcome.status == INTERRUPTED:
        trials.give_back(trial)
        return INTERRUPTED
    if outcome.status == 0 and not cut:
        try:
            found = values(run, search.objectives)
        except DistillError as error:
            outcome = Outcome(1, str(error))
            print(f"error: {error}", file=sys.stderr)
    if cut:
        print(f"{run.folder}: cut short, it has fallen behind the other trials", flush=True)
    elif found is None:
        trial.set_user_attr(REASON, outcome.reason)
    trials.tell(trial, found, pruned=cut)
    return outcome.status
