"""A trial at work: its start does not meet another's, and it ends early where it falls behind."""

from __future__ import annotations

from collections.abc import Mapping

from filelock import FileLock
from optuna.trial import Trial

from distill.runs.run_folder import Run
from distill.runs.summary import validations
from distill.search.objectives import Objective
from distill.training.callbacks.watched import Watcher


class CutShort(Exception):
    """A trial's validations have fallen behind those of the others."""


class TrialWatch(Watcher):
    """Reports the validations of a trial's run to the study, by the first of its objectives.

    `start` is held until the first step: trials that label the same set would meet there. Of
    several objectives nothing is reported: Optuna prunes by a single one.
    """

    def __init__(self, trial: Trial, objectives: list[str], run: Run, start: FileLock) -> None:
        self.trial, self.run, self.start = trial, run, start
        self.objective = Objective(objectives[0]) if len(objectives) == 1 else None
        self._reported: set[int] = set()

    def __enter__(self) -> TrialWatch:
        self.start.acquire()
        return self

    def __exit__(self, *_error: object) -> None:
        self.start.release(force=True)

    def started(self) -> None:
        self.start.release(force=True)
        for row in validations(self.run.folder / "metrics.csv"):  # of a run that goes on
            self._report(int(row["step"]), row)

    def validated(self, step: int, figures: Mapping[str, float]) -> None:
        self._report(step, figures)
        if self.objective and self.trial.should_prune():
            raise CutShort

    def _report(self, step: int, figures: Mapping[str, float]) -> None:
        value = self.objective.reported(figures) if self.objective else None
        if value is not None and step not in self._reported:
            self._reported.add(step)
            self.trial.report(value, step)
