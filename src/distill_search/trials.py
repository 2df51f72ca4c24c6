"""A study of Optuna as a search uses it: trials taken one by one, by several processes too."""

import json
import platform
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import optuna
from filelock import FileLock, Timeout
from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, JournalStorage, get_storage
from optuna.storages.journal import JournalFileBackend
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy.exc import DBAPIError

from distill.config.multirun import Job, Outcome
from distill.core.errors import INTERRUPTED, DistillError, library_errors
from distill.core.files import home_path
from distill_search.objectives import RISING
from distill_search.settings import Search
from distill_search.space import Space

OPENINGS = 10  # of a database: a second process that makes its tables meanwhile is an error
POPULATION = 10  # of NSGA-II; with Optuna's 50 a search of some dozen trials were all chance
ASKED = "asked"  # of a study: the search that it is of
PLACE, RUN, RESUMES = "place", "run", "resumes"  # of a trial: where it is at work, for whom
COPIES, REASON = "copies", "reason"  # the trial whose values it has, why it failed
OUTSIDE = "outside"  # the limit that its network is beyond


class Trials:
    """The study in a sweep's `folder`. Raises DistillError where it asked for something else.

    A process that takes a trial holds a lock of its own for it: a trial at work without one was
    killed, and is taken again in the same run's folder. That holds for processes that share the
    folder and the machine; others share the study through `search.storage`. `longest` and `first`
    are the steps of a run and of its first validation.
    """

    def __init__(self, search: Search, folder: Path, space: Space, longest: int, first: int):
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        folder.mkdir(parents=True, exist_ok=True)
        self.search, self.folder, self.space = search, folder, space
        self._guard = FileLock(folder / ".study.lock")
        self._held: dict[int, FileLock] = {}
        self._place = f"{platform.node()}:{folder.resolve()}"
        with self._guard:
            self.study = self._opened(longest, first)
            self._same_as_before()

    def take(self) -> Trial | None:
        """The next trial, with a run's name in its attributes; None where there are enough."""
        with self._guard:
            self._requeue_killed()
            if self._begun()[0] >= self.search.trials:
                return None
            trial = self.study.ask()
            if RUN not in trial.user_attrs:  # a killed one has its values, and that of its folder
                # Another machine may have sampled meanwhile: what counts is who came first.
                begun, outside = self._begun(trial.number)
                if begun >= self.search.trials:
                    trial.set_user_attr(RESUMES, trial.number)
                    self.study.tell(trial, state=TrialState.FAIL)
                    return None
                # A state of its own for each: what is sampled does not depend on which process
                # samples, or when.
                self.study.sampler = self._sampler(self.search.seed + begun + outside)
                trial.set_user_attr(RUN, f"trial-{begun + outside + 1:03d}")
            trial.set_user_attr(PLACE, self._place)
            for axis in self.space.axes:
                if axis.choices:
                    trial.suggest_categorical(axis.key, list(axis.choices))
                elif axis.whole:
                    low, high, step = int(axis.low), int(axis.high), int(axis.step or 1)
                    trial.suggest_int(axis.key, low, high, step=step, log=axis.log)
                else:
                    trial.suggest_float(axis.key, axis.low, axis.high, step=axis.step, log=axis.log)
            self._held[trial.number] = self._lock(trial.number)
            self._held[trial.number].acquire()
            return trial

    def running(self, number: int) -> Trial:
        """A trial that another process has taken, for this one to carry out.

        Raises DistillError where none is at work under that number.
        """
        running = self.study.get_trials(deepcopy=False, states=[TrialState.RUNNING])
        trial = next((trial for trial in running if trial.number == number), None)
        if trial is None:
            raise DistillError(f"launcher.only={number}: no such trial is running")
        self.study.sampler = optuna.samplers.RandomSampler()  # its values are sampled
        return Trial(self.study, trial._trial_id)

    def process_ended(self, trial: Trial, outcome: Outcome) -> None:
        """The process that carried out a trial has ended, whether it could say how or not."""
        if self.study.trials[trial.number].state != TrialState.RUNNING:
            self._release(trial.number)
        elif outcome.status == INTERRUPTED:
            self.requeue(trial)
        else:
            self.tell(trial, TrialState.FAIL, reason=outcome.reason)

    def duplicate(self, trial: Trial) -> FrozenTrial | None:
        """A finished trial of the very values."""
        typed = self.space.typed(trial.params)
        done = self.study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])
        return next((t for t in done if self.space.typed(t.params) == typed), None)

    def job(self, trial: Trial | FrozenTrial) -> Job:
        """A trial as a job. Raises DistillError for values that do not go together."""
        return self.space.make(self.space.typed(trial.params))

    def tell(
        self, trial: Trial, ended: Sequence[float] | TrialState, **attributes: str | int
    ) -> None:
        """A trial has ended, with these values or otherwise; `attributes` are noted with it."""
        for key, value in attributes.items():
            trial.set_user_attr(key, value)
        by_state = isinstance(ended, TrialState)
        self.study.tell(trial, **{"state" if by_state else "values": ended})
        self._release(trial.number)

    def requeue(self, trial: Trial) -> None:
        """A trial was interrupted: it is the next one, where its run's folder stands."""
        with self._guard:
            stored = self.study.trials[trial.number]
            if stored.state == TrialState.RUNNING:  # else the process that started this one did it
                self._again(stored)
        self._release(trial.number)

    def _begun(self, before: int | None = None) -> tuple[int, int]:
        """How many trials count, and how many were outside of the limits, of those with a lower
        number than `before`."""
        trials = self.study.get_trials(deepcopy=False)
        trials = [t for t in trials if before is None or t.number < before]
        return len(counted(trials)), sum(OUTSIDE in t.user_attrs for t in trials)

    def _opened(self, longest: int, first: int) -> Study:
        pruners: dict[str, optuna.pruners.BasePruner] = {
            "median": optuna.pruners.MedianPruner(),
            "hyperband": optuna.pruners.HyperbandPruner(min_resource=first, max_resource=longest),
            "none": optuna.pruners.NopPruner(),
        }
        address = self.search.storage
        path = home_path(address) if address else self.folder / "study.journal"
        with library_errors(f"{address or path}: no study can be kept there"):
            if address and "://" in address:
                storage = _database(address)
            else:
                storage = JournalStorage(JournalFileBackend(str(path)))
            return optuna.create_study(
                study_name=self.folder.name,
                storage=storage,
                load_if_exists=True,
                pruner=pruners[self.search.pruner],
                directions=[
                    "maximize" if name in RISING else "minimize" for name in self.search.objectives
                ],
            )

    def _sampler(self, seed: int) -> optuna.samplers.BaseSampler:
        several = len(self.search.objectives) > 1
        name = self.search.sampler
        if name == "nsga2" or (name == "auto" and several):
            return optuna.samplers.NSGAIISampler(population_size=POPULATION, seed=seed)
        if name == "random":
            return optuna.samplers.RandomSampler(seed)
        return optuna.samplers.TPESampler(seed=seed)

    def _same_as_before(self) -> None:
        now = {axis.key: axis.text for axis in self.space.axes}
        now |= {"search.objectives": ",".join(self.search.objectives)}
        now |= {f"search.{word}.{name}": f"{of:g}" for word, name, of in self.search.limits()}
        words = [word for word in self.space.fixed if not word.startswith(("runs=", "sweep="))]
        now |= {key: value for key, _, value in (word.partition("=") for word in words)}
        before = self.study.user_attrs.get(ASKED)
        if before is None:
            self.study.set_user_attr(ASKED, json.dumps(now))
            return
        old: Mapping[str, str] = json.loads(before)
        changed = [key for key in {**old, **now} if old.get(key) != now.get(key)]
        if changed:
            key = changed[0]
            raise DistillError(
                f"{self.folder}: its study has {key}={old.get(key, 'as it is by default')}, not "
                f"{now.get(key, 'that')}; type it as before, or start a new search with sweep=NAME"
            )

    def _requeue_killed(self) -> None:
        for trial in self.study.get_trials(deepcopy=False, states=[TrialState.RUNNING]):
            # Without a place: killed before it had one; in a database it may be anybody's.
            place = trial.user_attrs.get(PLACE, "" if self.search.storage else self._place)
            if place != self._place or trial.number in self._held:
                continue
            lock = self._lock(trial.number)
            with suppress(Timeout):  # at work
                with lock.acquire(blocking=False):
                    self._again(trial)
                Path(lock.lock_file).unlink(missing_ok=True)

    def _again(self, trial: FrozenTrial) -> None:
        named = {RUN: trial.user_attrs[RUN]} if RUN in trial.user_attrs else {}
        self.study.enqueue_trial(trial.params, user_attrs={RESUMES: trial.number, **named})
        self.study.tell(trial.number, state=TrialState.FAIL)

    def _lock(self, number: int) -> FileLock:
        return FileLock(self.folder / f".taken-{number}.lock")

    def _release(self, number: int) -> None:
        if lock := self._held.pop(number, None):  # of an adopted one the other process has it
            lock.release()
            Path(lock.lock_file).unlink(missing_ok=True)


def counted(trials: list[FrozenTrial]) -> list[FrozenTrial]:
    """Those that count: begun, within the limits, and not begun again as another one."""
    again = {trial.user_attrs.get(RESUMES) for trial in trials}
    return [
        t
        for t in trials
        if t.state != TrialState.WAITING and t.number not in again and OUTSIDE not in t.user_attrs
    ]


def _database(address: str) -> BaseStorage:
    for _ in range(OPENINGS - 1):
        with suppress(DBAPIError, StorageInternalError):
            return get_storage(address)
        time.sleep(random.uniform(0.1, 0.5))
    return get_storage(address)
