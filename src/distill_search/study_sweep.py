"""The jobs of a sweep: all of a grid, or those that a study samples."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from distill.config import multirun
from distill.config.compose import composed, over_conf
from distill.config.extension import Extension
from distill.config.help import Section, rows
from distill.config.multirun import Job, Make
from distill.config.registry import recipe_named
from distill.config.settings.training import Training
from distill.config.validate import check
from distill.core.errors import DistillError, extra_package
from distill_search.settings import Launcher, Search, Searching, SearchingOnCluster
from distill_search.space import Space, space_of
from distill_search.sweeps import SweepFolders, sweep_folder

Task = Callable[[Training], None]


@dataclass(frozen=True)
class StudySweep(SweepFolders):
    """A sweep that also runs its jobs elsewhere, or has a study of Optuna choose them, in
    RUNS/sweep-NAME/trial-NUMBER/.
    """

    groups: ClassVar[tuple[str, ...]] = ("search", "launcher")
    schemas: ClassVar[tuple[type, ...]] = (Searching,)

    def run(self, name: str, task: Task, words: Sequence[str], make: Make) -> None:
        searching = searching_of(name, shared := self.shared(words))
        of_jobs = [word for word in words if word not in shared]
        only = searching.launcher.only  # who started this one has checked all
        if searching.search:
            space = space_of(name, of_jobs, make, only is None)
            self._search(name, task, space, searching)
        else:
            self._grid(name, task, multirun.jobs(name, of_jobs, make, only), searching.launcher)

    def sections(self, name: str, comments: Mapping[str, str]) -> list[Section]:
        values = composed(name, ["search=optuna", "launcher=submitit"])
        title = "With -m search=optuna (search), and for all jobs of -m (launcher)"
        return [Section(title, [*rows(SearchingOnCluster, values, comments)])]

    def _grid(self, name: str, task: Task, jobs: Sequence[Job], launcher: Launcher) -> None:
        from distill_search import jobs as processes

        if launcher.only is not None:
            sys.exit(processes.run_one(task, self.place(jobs)[0]))
        in_processes = partial(processes.run_in_processes, name, launcher)
        run_all = None if launcher.sequential else in_processes
        multirun.run(task, jobs, self, run_all, launcher.report)

    def _search(self, name: str, task: Task, space: Space, searching: Searching) -> None:
        extra_package("optuna", "search=optuna", "pip install 'distill[search]'")
        from distill_search import front, trial_loop
        from distill_search.trials import Trials

        search, launcher = searching.search, searching.launcher
        assert search is not None
        probe = space.make(next(space.probes()))
        if not search.objectives:
            search = replace(search, objectives=[recipe_named(probe.settings.recipe).objective])
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


class Searches(Extension):
    """The groups search and launcher of a command with -m."""

    sweep = StudySweep()


def searching_of(name: str, words: Sequence[str]) -> Searching:
    """How jobs are chosen and where they run, by the words that set it."""
    with over_conf(name, words) as parser:
        for each in parser.parse_overrides(list(words)):
            if each.is_sweep_override():
                raise DistillError(f"{each.key_or_group}: one for all jobs of a sweep, not several")
    whole = composed(name, words)
    values = {key: whole[key] for key in StudySweep.groups}
    if values["search"]["name"] == "grid":  # it has no settings
        values["search"] = None
    on_cluster = values["launcher"]["name"] == "submitit"
    return check(values, SearchingOnCluster if on_cluster else Searching)


def _check(search: Search, settings: Training) -> None:
    """Raises DistillError for settings of a search that do not go together."""
    if search.pruner != "none" and len(search.objectives) > 1:
        raise DistillError(
            f"search.pruner={search.pruner}: compares by one objective; name one, or leave it out"
        )
    if search.pruner != "none" and settings.trainer.devices != 1:
        raise DistillError(
            f"search.pruner={search.pruner}: a trial in several processes cannot be pruned; "
            "set trainer.devices=1 or leave it out"
        )
