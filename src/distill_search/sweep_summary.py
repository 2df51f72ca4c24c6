"""What came of a sweep's jobs: summary.md, summary.csv, summary.png, a table on the terminal."""

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from distill.config.multirun import Job, Outcome
from distill.config.registry import recipes
from distill.core.errors import INTERRUPTED, DistillError
from distill.core.files import atomic_write, write_whole
from distill.core.report import markdown_table
from distill.metrics import complexity
from distill.models import checkpoint
from distill.runs.run_folder import Run, ended_early, step_of

Row = dict[str, Any]
Curves = Mapping[str, Sequence[Mapping[str, float]]]  # a run's name: its validations, by column

DISTANCE = "lowest val/frechet"  # of the recipes that measure one; a column where any run does
FIGURES: dict[str, Callable[[Any], str]] = {  # the columns, and how people read them
    "steps": "{:,}".format,
    "best val/psnr (dB)": "{:.2f}".format,
    "at step": "{:,}".format,
    "val/ssim": "{:.4f}".format,
    "val/loss": "{:.4g}".format,
    "nonzero weights": "{:.1%}".format,
    "MACs": "{:,}".format,
    "parameters": "{:,}".format,
    DISTANCE: "{:.2f}".format,
}
ON_SCREEN = {  # those that fit a terminal, under shorter names
    "best val/psnr (dB)": "PSNR",
    "at step": "at step",
    "val/ssim": "SSIM",
    "nonzero weights": "nonzero",
}
GENERATORS_ON_SCREEN = {"steps": "steps", "best val/psnr (dB)": "PSNR", DISTANCE: "Fréchet"}
PANELS = {"val/psnr": "val/psnr (dB)", "val/ssim": "val/ssim"}
DISTANCE_PANELS = {"val/frechet": "val/frechet", "val/kid": "val/kid"}  # where no run has pairs
NOTES = (
    "val/ssim, val/loss and nonzero weights are those of the step with the best val/psnr; "
    "checkpoints/best.ckpt is the step of the lowest {monitors}.",
    "val/loss does not compare between jobs whose losses differ.",
)


def write(
    folder: Path,
    jobs: Sequence[Job],
    outcomes: Sequence[Outcome],
    more: Sequence[Row] | None = None,
) -> None:
    """One row per job, from what is in its folder, whatever became of it; `more` are columns."""
    runs = [Run(folder / job.name) for job in jobs]
    tables = [run.validations() for run in runs]
    rows = [
        {"job": job.name, **job.swept, "state": state(run, job, outcome), **figures(run, table)}
        for run, job, outcome, table in zip(runs, jobs, outcomes, tables, strict=True)
    ]
    rows = [row | further for row, further in zip(rows, more or [{}] * len(rows), strict=True)]
    if all(row[DISTANCE] is None for row in rows):
        rows = [{key: value for key, value in row.items() if key != DISTANCE} for row in rows]
    with atomic_write(folder / "summary.csv") as page, page.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    write_whole(folder / "summary.md", markdown(rows))
    curves: Curves = {job.name: table for job, table in zip(jobs, tables, strict=True) if table}
    if curves:
        plot(curves, folder / "summary.png")
    show(rows)
    print(f"summary: {folder / 'summary.md'} (.csv, .png)")


def figures(run: Run, table: Sequence[dict[str, float]]) -> Row:
    """The columns of FIGURES; None where a run has not come so far.

    MACs are those of the network's convolutions at its run's resolution.
    """
    row: Row = dict.fromkeys(FIGURES)
    with suppress(DistillError):  # no checkpoint, or a damaged one
        row["steps"] = step_of(run.checkpoint("last"))
        network, trained = checkpoint.load_network(run.checkpoint("best"))
        row["MACs"] = complexity.module_macs(network, trained.side)
        row["parameters"] = complexity.parameters(network)
    row[DISTANCE] = min((r["val/frechet"] for r in table if "val/frechet" in r), default=None)
    if table := [r for r in table if "val/psnr" in r]:
        best = max(table, key=lambda row: row["val/psnr"])
        row["best val/psnr (dB)"], row["at step"] = best["val/psnr"], int(best["step"])
        row["val/ssim"], row["val/loss"] = best.get("val/ssim"), best.get("val/loss")
        row["nonzero weights"] = best.get("health/living_weights")
    return row


def state(run: Run, job: Job, outcome: Outcome) -> str:
    """`finished`, `failed: REASON`, `stopped at step N` or `not started`."""
    if outcome.state:
        return outcome.state
    if outcome.status == 0:
        return "finished"
    if outcome.status not in (None, INTERRUPTED):
        return f"failed: {outcome.reason}"
    if not run.last.is_file():
        return "not started"
    try:
        step, early = step_of(run.last), ended_early(run.last)
    except DistillError as error:
        return f"failed: {error}"
    # The settings of a run that was given in epochs have no length; the run's own have.
    end = job.settings.trainer.max_steps or run.settings().trainer.max_steps or math.inf
    if early or step >= end:
        return "finished"
    return f"stopped at step {step}"


def markdown(rows: Sequence[Row]) -> str:
    """The table with its notes."""
    monitors = ", ".join(f"{each.monitor} (recipe={each.name})" for each in recipes().values())
    notes = [note.format(monitors=monitors) for note in NOTES]
    table = markdown_table([list(rows[0]), *(_shown(row) for row in rows)])
    return "\n".join(["# Sweep", "", table, "", *notes, ""])


def plot(curves: Curves, path: Path) -> None:
    """PSNR and SSIM over steps, a line per run, into a PNG file; distances where none has them."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    pairs = any("val/psnr" in row for table in curves.values() for row in table)
    panels = PANELS if pairs else DISTANCE_PANELS
    lines = -(-len(curves) // 2)  # of the legend, which has two columns
    figure = Figure(figsize=(12, 4.8 + 0.25 * lines), layout="constrained")
    for axes, (column, label) in zip(figure.subplots(1, 2), panels.items(), strict=True):
        axes.set(xlabel="step", ylabel=label)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
        for number, (name, table) in enumerate(curves.items()):
            steps = [row["step"] for row in table]
            values = [row.get(column, float("nan")) for row in table]
            style = ("-", "--", "-.", ":")[number % 4]  # shows what lies below, too
            colour = colormaps["tab10"](number % 10)
            axes.plot(steps, values, style, color=colour, marker="o", markersize=3, label=name)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    with atomic_write(path) as temporary:
        figure.savefig(temporary, format="png", dpi=120)


def show(rows: Sequence[Row]) -> None:
    """The table on the terminal, without what was swept: the jobs' names say it."""
    shown = ON_SCREEN if DISTANCE not in rows[0] else GENERATORS_ON_SCREEN
    figures = (Column(heading, justify="right", no_wrap=True) for heading in shown.values())
    table = Table(Column("job", overflow="fold"), "state", *figures, box=SIMPLE_HEAD)
    for row in rows:
        cells = _shown({column: row[column] for column in ("job", "state", *shown)})
        table.add_row(*map(escape, cells))
    Console().print(table)


def _shown(row: Row) -> list[str]:
    return [
        "" if value is None else FIGURES.get(column, str)(value) for column, value in row.items()
    ]
