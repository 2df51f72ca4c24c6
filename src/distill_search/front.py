"""What a search found: the best trial or the Pareto front as table, picture and commands."""

from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial, TrialState
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from distill.config.multirun import Job, Outcome
from distill.core.errors import DistillError
from distill.core.files import atomic_write, write_whole
from distill.core.next_step import assigned, for_shell, next_step
from distill.core.report import markdown_table
from distill.runs.run_folder import Run
from distill_search import sweep_summary as summary
from distill_search.objectives import RISING
from distill_search.trials import COPIES, REASON, RUN, Trials, counted

SHOWN = {"macs": "{:,.0f}", "parameters": "{:,.0f}", "ms": "{:.3f}", "loss": "{:.4g}"}
UNITS = {"psnr": "PSNR (dB)", "ssim": "SSIM", "macs": "MACs", "frechet": "Fréchet"}


def report(trials: Trials, probe: Job) -> None:
    """Write summary.* of all trials, front.md and front.png, and show the front with commands.

    `probe` is a job of the search, for what all have in common. Raises DistillError where no trial
    came to its end, though some began and failed.
    """
    # Those with a run of their own, in the order they were sampled.
    counting = counted(trials.study.get_trials(deepcopy=False))
    runs = [t for t in counting if RUN in t.user_attrs and COPIES not in t.user_attrs]
    if not runs:
        print(f"{trials.folder}: no trial has begun yet")
        return
    names = trials.search.objectives
    complete = [trial for trial in runs if trial.state == TrialState.COMPLETE]
    best = front(complete, names)
    jobs = [Job(trials.space.swept(t.params), [], probe.settings, t.user_attrs[RUN]) for t in runs]
    outcomes, more = [], []
    for trial in runs:
        values = dict.fromkeys(names)
        outcome = Outcome(state="at work")
        if trial.state == TrialState.COMPLETE:
            outcome, values = Outcome(0), dict(zip(names, trial.values, strict=True))
        elif trial.state == TrialState.FAIL:
            outcome = Outcome(1, trial.user_attrs.get(REASON, ""))
        elif trial.state == TrialState.PRUNED:
            last = max(trial.intermediate_values, default=0)
            outcome = Outcome(state=f"pruned at step {last}")
        outcomes.append(outcome)
        columns: summary.Row = {f"objective {name}": value for name, value in values.items()}
        more.append(columns | {"front": "yes" if trial in best else ""})
    summary.write(trials.folder, jobs, outcomes, more)
    failed = [trial for trial in runs if trial.state == TrialState.FAIL]
    if failed and not complete:
        raise DistillError(
            f"{trials.folder}: no trial came to its end; the first that failed: "
            f"{failed[0].user_attrs.get(REASON, 'no reason given')}"
        )
    if failed:
        print(f"trials that failed: {len(failed)} of {len(runs)}; summary.md says why")
    if complete:
        plot(complete, best, names, trials.folder / "front.png")
        show(best, trials)


def front(complete: Sequence[FrozenTrial], names: Sequence[str]) -> list[FrozenTrial]:
    """Those that no other one is better than in one objective and as good as in the rest.

    The best of the first objective comes first; of one objective it is the first of the best.
    """
    signs = [-1 if name in RISING else 1 for name in names]
    points = [[s * v for s, v in zip(signs, t.values, strict=True)] for t in complete]
    best: dict[tuple[float, ...], FrozenTrial] = {}
    for trial, point in zip(complete, points, strict=True):
        beaten = any(
            other != point and all(a <= b for a, b in zip(other, point, strict=True))
            for other in points
        )
        if not beaten:
            best.setdefault(tuple(point), trial)
    return [best[point] for point in sorted(best)]


def plot(
    complete: Sequence[FrozenTrial], best: Sequence[FrozenTrial], names: Sequence[str], path: Path
) -> None:
    """The first objective over each other one, the front joined; of one, over the trials."""
    from matplotlib.figure import Figure

    labels = ["trial", *(UNITS.get(name, name) for name in names)]
    over = range(2, len(labels)) if len(names) > 1 else [0]
    figure = Figure(figsize=(6 * len(over), 4.8), layout="constrained")
    rest = [[t.number + 1, *t.values] for t in complete if t not in best]
    shown = {t.user_attrs[RUN]: [t.number + 1, *t.values] for t in best}
    beside: Any = {"xytext": (4, 4), "textcoords": "offset points", "fontsize": 8}
    for axes, x in zip(figure.subplots(1, len(over), squeeze=False)[0], over, strict=True):
        axes.set(xlabel=labels[x], ylabel=labels[1])
        axes.grid(alpha=0.3)
        axes.scatter([each[x] for each in rest], [each[1] for each in rest], color="grey")
        ordered = sorted(shown.values(), key=itemgetter(x))
        style = "o-" if len(names) == 2 else "o"  # of three objectives it is no line
        axes.plot([each[x] for each in ordered], [each[1] for each in ordered], style)
        for run, each in shown.items():
            axes.annotate(run, (each[x], each[1]), **beside)
    with atomic_write(path) as temporary:
        figure.savefig(temporary, format="png", dpi=120)


def commands(trial: FrozenTrial, trials: Trials) -> list[str]:
    """How to export a trial's run, and how to train its values again, for longer say."""
    run = Run(trials.folder / trial.user_attrs[RUN])
    typed = trials.job(trial).overrides
    name = assigned("run", f"{trials.folder.name.removeprefix('sweep-')}-{run.folder.name}")
    words = [word for word in typed if not word.startswith(("sweep=", "runs="))]
    train = " ".join(["python -m distill.train", *map(for_shell, words), name])
    return [next_step("export", **run.words).removeprefix("next: "), train]


def show(best: Sequence[FrozenTrial], trials: Trials) -> None:
    """Write front.md and print the same: a table of the front, then each trial's commands."""
    names = trials.search.objectives
    title = "Best trial" if len(names) == 1 else "Pareto front"
    rows = [
        ["run", *(UNITS.get(name, name) for name in names), *(a.key for a in trials.space.axes)]
    ]
    for trial in best:
        figures = zip(names, trial.values, strict=True)
        shown = [SHOWN.get(name, "{:.4f}").format(value) for name, value in figures]
        rows.append([trial.user_attrs[RUN], *shown, *trials.space.swept(trial.params).values()])
    typed = [commands(trial, trials) for trial in best]
    code = "\n\n".join("\n".join(lines) for lines in typed)
    page = f"# {title}\n\n{markdown_table(rows)}\n\n```\n{code}\n```\n"
    write_whole(trials.folder / "front.md", page)

    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left")
    for number, heading in enumerate(rows[0]):
        right = 0 < number <= len(names)
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for row in rows[1:]:
        table.add_row(*map(escape, row))
    Console().print(table)
    print("\n".join(line for lines in typed for line in lines))
    print(f"front: {trials.folder / 'front.md'} (.png)")
