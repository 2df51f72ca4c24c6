"""Where the runs of a sweep go: a folder each, named by what the jobs differ in."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from distill.config.multirun import Job, Outcome, Sweep
from distill.config.registry import recipe_named
from distill.config.settings.training import Training
from distill.core.errors import DistillError
from distill.core.next_step import quoted
from distill.core.next_step import typed as as_typed

LONGEST = 40  # characters of one value in a folder's name


@dataclass(frozen=True)
class SweepFolders(Sweep):
    """A run's folder for each job, RUNS/sweep-NAME/STYLE-DECODER-LOSS/, and a summary of all."""

    def alone(self, settings: Training, words: Sequence[str]) -> None:
        super().alone(settings, words)
        if settings.sweep is not None:
            raise DistillError(
                f"sweep={settings.sweep}: names the folder of several jobs; add -m and give a "
                "setting several values, or name a single run with run=NAME"
            )

    def place(self, jobs: Sequence[Job]) -> list[Job]:
        folder = sweep_folder(jobs[0])
        placed = [into(folder, job, folder_name(job)) for job in jobs]
        names = [job.name for job in placed]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise DistillError(
                f"{folder}/{twice[0]}: two jobs have this folder; name each value once"
            )
        return placed

    def report(self, jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> None:
        from distill_search import sweep_summary

        sweep_summary.write(Path(jobs[0].settings.runs), jobs, outcomes)


def sweep_folder(job: Job) -> str:
    """Of all jobs together, by `sweep` or else by the keys that they differ in.

    Raises DistillError for what names the folder of one run, or several.
    """
    if any(_key(override) == "run" for override in job.overrides):
        raise DistillError("run: a sweep names its runs itself; name the sweep with sweep=NAME")
    if fixed := {"runs", "sweep"} & job.swept.keys():
        raise DistillError(f"{min(fixed)}: one for all jobs of a sweep, not several")
    name = job.settings.sweep or safe("+".join(job.swept), 3 * LONGEST)
    return str(Path(job.settings.runs) / f"sweep-{name}")


def into(folder: str, job: Job, name: str) -> Job:
    """The job as a run of that name in the sweep's folder."""
    # Processes that Lightning starts for further devices are given this command line.
    typed = [o for o in job.overrides if _key(o) not in ("runs", "sweep")]
    settings = replace(job.settings, run=name, runs=folder, sweep=None)
    words = [*typed, f"run={quoted(name)}", f"runs={as_typed(folder)}"]
    return Job(job.swept, words, settings, name)


def folder_name(job: Job) -> str:
    """What its recipe names, as STYLE-DECODER-LOSS, then -KEY=VALUE for all else that is swept.

    Names of one sweep are equal only where all its values are.
    """
    parts = recipe_named(job.settings.recipe).folder_parts(job.settings, job.swept)
    others = {k: value for k, value in job.swept.items() if k not in {"recipe", *parts}}
    swept = [f"{safe(re.split(r'[./]', k)[-1])}={safe(value)}" for k, value in others.items()]
    return safe("-".join([*map(safe, parts.values()), *swept]), 5 * LONGEST, keep="=~")


def safe(text: str, longest: int = LONGEST, keep: str = "") -> str:
    """Text as a part of a folder's name.

    What had to be changed or cut ends in ~ and a digest, so that two texts never become one.
    """
    plain = re.sub(rf"[^A-Za-z0-9_.+{keep}-]+", "_", text)[:longest]
    if plain == text:
        return text
    return f"{plain}~{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def _key(override: str) -> str:
    return override.partition("=")[0].lstrip("+")
