"""The figures of distill.benchmark for people: tables, JSON, Markdown, a bar chart."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from distill.core.errors import counted
from distill.core.files import atomic_write, write_whole
from distill.core.report import markdown_table
from distill.metrics import timing
from distill_benchmark.measure import Figures, Row

ENOUGH = 6  # rounds for an interval of 95 %, see timing.median_interval
BUSY = 0.5  # of a core wanted by others before the start: figures are then not to be trusted
COLOURS = {
    "teacher": "#9a9a9a", "student": "#1f77b4", "file": "#e0a030", "file, unflushed": "#f0d9a8",
}  # fmt: skip
Cells = Sequence[tuple[str, Callable[[Row], str]]]  # a column's title and what it says of a row


def _number(key: str, form: str = ",.0f", unit: float = 1) -> Callable[[Row], str]:
    return lambda row: "" if row[key] is None else format(row[key] / unit, form)


def _ms(key: str) -> Callable[[Row], str]:
    return lambda row: f"{row[key]:,.0f}" if row[key] >= 100 else f"{row[key]:.2f}"


WHERE: Cells = (
    ("size", lambda row: f"{row['size']}²"),
    ("threads", lambda row: str(row["threads"])),
    ("provider", lambda row: row["provider"].removesuffix("ExecutionProvider")),
)
NAME: Cells = (("network", lambda row: row["name"]),)
SPEED: Cells = (
    ("ms", _ms("ms")),
    ("5 %", _ms("ms_p5")),
    ("95 %", _ms("ms_p95")),
    ("FPS", _number("fps", ".1f")),
    ("MMACs", _number("macs", ",.1f", 1e6)),
    ("GMAC/s", _number("gmacs_per_s", ".1f")),
    ("of peak", _number("share_of_peak", ".0%")),
    ("MiB", _number("memory_mib", ".0f")),
)
RATIOS: Cells = (
    ("times as long", lambda row: f"{row['median']:.3g}"),
    ("95 % interval", lambda row: f"{row['low']:.3g} – {row['high']:.3g}"),
    ("the student takes", lambda row: f"{1 / row['median']:.3g} of it"),
)
TABLE_3: Cells = (
    ("model", lambda row: row["name"]),
    ("MMACs", _number("macs", ",.1f", 1e6)),
    ("parameters", _number("parameters")),
    ("bytes", _number("bytes")),
    ("ms", _ms("ms")),
    ("FPS", _number("fps", ".1f")),
    ("by", lambda row: row["runtime"]),
)


def show(figures: Figures) -> None:
    """The tables on the terminal, one for each set of conditions, the machine above them."""
    console = Console()
    console.print(escape(_machine(figures)), highlight=False)
    for conditions in dict.fromkeys(map(_conditions, figures.rows)):
        for cells, rows in ((SPEED, figures.rows), (RATIOS, figures.ratios)):
            here = [row for row in rows if _conditions(row) == conditions]
            if here:
                title, columns = f"{', '.join(conditions)}, batch 1", (*NAME, *cells)
                table = Table(
                    title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False
                )
                for i, (name, _) in enumerate(columns):
                    table.add_column(name, justify="right" if i else "left", no_wrap=bool(i))
                for row in here:
                    table.add_row(*(escape(cell(row)) for _, cell in columns))
                console.print(table)
    for line in _notes(figures):
        print(line)


def _conditions(row: Row) -> tuple[str, ...]:
    threads = f"{counted(row['threads'], 'thread')}"
    return f"{row['size']}²", threads, row["provider"].removesuffix("ExecutionProvider")


def _machine(figures: Figures) -> str:
    facts = figures.machine
    return (
        f"{facts['processor']}, {facts['cores']} cores, {facts['system']}, ONNX Runtime "
        f"{facts['onnxruntime']}, PyTorch {facts['torch']}, Python {facts['python']}"
    )


def _notes(figures: Figures) -> list[str]:
    """What is to be known beside the tables."""
    peaks = [
        f"peak: {rate:.1f} GMAC/s on {counted(threads, 'thread')} of {provider}, the "
        f"fastest float32 product of {' or '.join(f'{side}²' for side in timing.SIDES)} matrices"
        for (provider, threads), rate in figures.best_peaks().items()
        if rate
    ]
    notes = [
        *peaks,
        "MiB: the most memory beyond ONNX Runtime itself, in a process of its own",
        "parameters of a file: the values in it, BatchNorm folded",
    ]
    tiny = [row for row in figures.rows if row["role"] == "file, unflushed"]
    for name, count in {row["name"]: row["subnormal_weights"] for row in tiny}.items():
        notes.append(f"{name}: {count:,} subnormal weights; no ratio is taken with it")
    if figures.machine.get("rounds", ENOUGH) < ENOUGH:
        notes.append(f"fewer than {ENOUGH} rounds: the intervals are ranges, less than 95 % sure")
    before = figures.machine["load_before"]
    if before is not None and before > BUSY:
        notes.append(
            f"warning: the machine was busy (load {before} before the start); measure again"
        )
    return notes


def write(figures: Figures, folder: Path) -> None:
    """speed.json, speed.md and speed.png, a bar chart."""
    content = json.dumps(asdict(figures), indent=2, ensure_ascii=False)
    write_whole(folder / "speed.json", content + "\n")
    write_whole(folder / "speed.md", _markdown(figures))
    if figures.rows:
        with atomic_write(folder / "speed.png") as picture:
            _chart(figures, picture)
    print(f"figures: {folder / 'speed.json'}, speed.md and speed.png")


def _markdown(figures: Figures) -> str:
    first = figures.rows[0] if figures.rows else {}
    threads = min((row["threads"] for row in figures.rows), default=1)
    same = {"threads": threads, "provider": first.get("provider"), "size": first.get("size", "")}
    rows = [row for row in figures.rows if same.items() <= row.items()]
    how = f"{same['size']}², batch 1, {counted(threads, 'thread')}"
    title = f"The paper's Table 3 on this machine: {how}"
    parts = [
        "# Speed", _machine(figures),
        "## All figures", _table((*NAME, *WHERE, *SPEED), figures.rows),
        "## Against the student, round by round", _table((*NAME, *WHERE, *RATIOS), figures.ratios),
        f"## {title}", _table(TABLE_3, rows),
        "## Notes", "\n".join(f"- {line}" for line in [*_notes(figures), *figures.skipped]),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def _table(cells: Cells, rows: Sequence[Row]) -> str:
    heads = [name for name, _ in cells]
    return markdown_table([heads, *([cell(row) for _, cell in cells] for row in rows)])


def _chart(figures: Figures, target: Path) -> None:
    """Milliseconds by a bar each, on a logarithmic scale; whiskers from 5 to 95 %."""
    from matplotlib.figure import Figure

    rows = figures.rows[::-1]
    parts = 3 if len({row["provider"] for row in rows}) > 1 else 2
    names = [row["name"].replace("$", r"\$") for row in rows]  # no formula
    labels = [f"{n}\n{', '.join(_conditions(r)[:parts])}" for n, r in zip(names, rows, strict=True)]
    figure = Figure(figsize=(9, 1.2 + 0.36 * len(rows)), layout="constrained")
    axes = figure.subplots()
    values = [row["ms"] for row in rows]
    spread = [
        [max(row["ms"] - row["ms_p5"], 0) for row in rows],
        [max(row["ms_p95"] - row["ms"], 0) for row in rows],
    ]
    colours = [COLOURS[row["role"]] for row in rows]
    axes.barh(labels, values, xerr=spread, color=colours, ecolor="#444444", capsize=2)
    for place, row in enumerate(rows):
        axes.annotate(
            f"{_ms('ms')(row)} ms · {row['fps']:,.1f} FPS", (row["ms_p95"], place),
            xytext=(5, 0), textcoords="offset points", va="center", fontsize=8,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlim(min(values) / 2, max(row["ms_p95"] for row in rows) * 6)
    axes.set_xlabel("milliseconds a picture, batch 1")
    axes.set_title(str(figures.machine["processor"]), fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(target, format="png", dpi=150)
