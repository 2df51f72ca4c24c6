"""A running trial: starts are staggered, and it is pruned where it falls behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from optuna.trial import Trial

from distill.runs.run_folder import Run
from distill.train.search.objectives import Objective
from distill.train.search.staggered_start import StaggeredStart
from distill.train.search.summary import validations


class TrialPruned(Exception):
    """A trial's validations have fallen behind those of the others."""


class TrialWatch(StaggeredStart):
    """Reports the validations of a trial's run to the study, by the first of its objectives.

    Of several objectives nothing is reported: Optuna prunes by a single one.
    """

    def __init__(self, trial: Trial, objectives: Sequence[str], run: Run) -> None:
        super().__init__(run.folder.parent)
        self.trial, self.run = trial, run
        self.objective = Objective(objectives[0]) if len(objectives) == 1 else None
        self.pruned = False  # it was pruned, which is no error
        self._reported: set[int] = set()

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> bool:
        super().__exit__(kind, *error)
        self.pruned = kind is TrialPruned
        return self.pruned

    def started(self) -> None:
        super().started()
        for row in validations(self.run.folder / "metrics.csv"):  # of a resumed run
            self._report(int(row["step"]), row)

    def validated(self, step: int, figures: Mapping[str, float]) -> None:
        self._report(step, figures)
        if self.objective and self.trial.should_prune():
            raise TrialPruned

    def _report(self, step: int, figures: Mapping[str, float]) -> None:
        value = self.objective.reported(figures) if self.objective else None
        if value is not None and step not in self._reported:
            self._reported.add(step)
            self.trial.report(value, step)
