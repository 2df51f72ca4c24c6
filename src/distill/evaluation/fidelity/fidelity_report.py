"""The report's tables, its plot of fidelity over milliseconds, and its sheets of pictures."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from distill.core.arrays import save_png
from distill.core.cores import cores
from distill.core.files import atomic_write, write_json, write_whole
from distill.core.images import sheet, to_float
from distill.evaluation.drawing_scores import OFF
from distill.evaluation.fidelity.heldout_set import FidelitySet
from distill.evaluation.fidelity.scored_students import RESERVED
from distill.evaluation.fidelity.scores import PSNR
from distill.metrics.ink_figures import FIGURES
from distill.metrics.machine import load_average

Row = dict[str, Any]
Scores = Mapping[str, Mapping[str, Row]]  # student → figure → value, interval, pictures
DIGITS = {"SSIM": 4, "LPIPS": 4} | dict.fromkeys(FIGURES, 3)
MORE_IS_BETTER = ("PSNR", "SSIM", "ink", "against centre")
TITLES = {"close": "", "drawn": ", how it is drawn", "views": ", off-centre"}  # kinds of figures
ZOOM, ENLARGED = 128, 2  # pixels cut around a face, and how often each is shown
COSTS = {  # how the columns are called
    "ms": "ms, median (5th – 95th percentile)",
    "ratio": "ms to the first, round by round",
    "macs": "MACs (M)",
    "parameters": "parameters",
    "graph_parameters": "values in the graph",
    "living": "living weights",
    "bytes": "bytes",
}


@dataclass(frozen=True)
class Table:
    """A titled Markdown table; `rows` hold the cells of each `columns` entry."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __str__(self) -> str:
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        body = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
        return f"## {self.title}\n\n{body}\n"


def machine() -> dict[str, object]:
    """What the figures depend on; says nothing of whose machine it is."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": cores(),
        "torch threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "load before": load_average(),
    }


def write(name: str, out: Path, facts: dict[str, object], figures: object, *tables: Table) -> None:
    """Print the tables; keep them as OUT/NAME.md and all figures as OUT/NAME.json."""
    said = ", ".join(f"{key} {value}" for key, value in facts.items())
    page = "\n".join([f"# {name}\n\n{said}\n", *map(str, tables)])
    print(page)
    write_whole(out / f"{name}.md", page)
    write_json(out / f"{name}.json", {"machine": facts, "figures": figures})
    print(f"written to {out / name}.md and .json")


def tables(figures: Row) -> list[Table]:
    """Tables of each subset, one of what each student costs, one of notes."""
    subsets = figures["subsets"].items()
    scores = [
        each
        for name, row in subsets
        for each in scores_tables(name, row["pictures"], row["scores"])
    ]
    notes = Table("Notes", ["about", "note"], [list(note) for note in figures["notes"]])
    return [*scores, _cost_table(figures["cost"]), notes]


def scores_tables(subset: str, pictures: int, scores: Scores) -> list[Table]:
    """How close, how drawn, and how off-centre; each with the rows and columns that it has."""
    return [scores_table(subset + title, pictures, part) for title, part in by_kind(scores).items()]


def by_kind(scores: Scores) -> dict[str, dict[str, dict[str, Row]]]:
    """The same scores, apart by what they are about, under the rest of each table's title."""
    parts: dict[str, dict[str, dict[str, Row]]] = {}
    for name, row in scores.items():
        for column, figure in row.items():
            parts.setdefault(_kind(column), {}).setdefault(name, {})[column] = figure
    return {title: parts[kind] for kind, title in TITLES.items() if kind in parts}


def _kind(column: str) -> str:
    if column.startswith(("ink ", "flicker", OFF)):
        return "drawn"
    return "views" if column.startswith(("off-centre", f"{PSNR}, ")) else "close"


def scores_table(subset: str, pictures: int, scores: Scores) -> Table:
    columns = list(dict.fromkeys(column for row in scores.values() for column in row))
    best = {column: _best(column, scores) for column in columns}
    rows = [
        [name, *(_cell(row.get(column), column, name == best[column]) for column in columns)]
        for name, row in scores.items()
    ]
    heads = [_head(column, pictures, scores) for column in columns]
    return Table(f"{subset}: {pictures} pictures", ["student", *heads], rows)


def _head(column: str, pictures: int, scores: Scores) -> str:
    counts = {row[column]["pictures"] for row in scores.values() if column in row}
    few = counts - {pictures}
    return f"{column}, {few.pop()} pictures" if few else column


def _best(column: str, scores: Scores) -> str | None:
    """The best student; photo and teacher are there to compare with and never compete."""
    values = {n: r[column]["value"] for n, r in scores.items() if column in r and n not in RESERVED}
    if len(values) < 2 or " above " in column:  # the first, at 0, is not in that column
        return None
    most = any(word in column for word in MORE_IS_BETTER)
    return (max if most else min)(values, key=values.__getitem__)


def _cell(row: Row | None, column: str, best: bool) -> str:
    if row is None:
        return "–"
    digits = DIGITS.get(column, 2)
    value = f"{row['value']:.{digits}f}"
    value = f"**{value}**" if best else value
    if row["interval"] is None:
        return value
    low, high = row["interval"]
    return f"{value} ({low:.{digits}f} – {high:.{digits}f})"


def _cost_table(cost: Mapping[str, Row]) -> Table:
    least = {key: min(_plain(row[key]) for row in cost.values()) for key in COSTS}
    most = {"living": max(_plain(row["living"]) for row in cost.values())}
    best = least | most
    rows = [
        [name, *(_cost_cell(key, row[key], best[key], len(cost) > 1) for key in COSTS)]
        for name, row in cost.items()
    ]
    return Table("Cost, on one thread of ONNX Runtime", ["student", *COSTS.values()], rows)


def _plain(value: Any) -> float:
    return value["value"] if isinstance(value, dict) else float(value or 0)


def _cost_cell(key: str, value: Any, best: float, several: bool) -> str:
    said = {
        "ms": lambda: f"{value['value']:.2f}",
        "ratio": lambda: f"{value['value']:.2f}",
        "macs": lambda: f"{value / 1e6:.1f}",
        "living": lambda: "–" if value is None else f"{100 * value:.1f} %",
    }.get(key, lambda: f"{value:,}")()
    said = f"**{said}**" if several and _plain(value) == best else said
    return f"{said} ({value['low']:.2f} – {value['high']:.2f})" if isinstance(value, dict) else said


def plot(figures: Row, path: Path) -> None:
    """PSNR over milliseconds, a panel per subset, a marker per student; top left is best."""
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    subsets = figures["subsets"]
    wide = min(3, len(subsets))
    high = -(-len(subsets) // wide)
    figure = Figure(figsize=(4.6 * wide, 3.8 * high + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(high, wide, squeeze=False).ravel()
    for axes, (subset, rows) in zip(grid, subsets.items(), strict=False):
        axes.set(title=f"{subset}: {rows['pictures']} pictures", xlabel="ms", ylabel=PSNR)
        axes.grid(alpha=0.3)
        for number, (name, cost) in enumerate(figures["cost"].items()):
            colour, marker = colormaps["tab10"](number % 10), "osD^vP*X"[number % 8]
            _point(
                axes, cost["ms"], rows["scores"][name][PSNR], color=colour, fmt=marker, label=name
            )
        axes.set_xlim(left=0)
    for axes in grid[len(subsets) :]:
        axes.set_axis_off()
    figure.legend(*grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    with atomic_write(path) as temporary:
        figure.savefig(temporary, format="png", dpi=120)


def _point(axes: Any, ms: Row, psnr: Row, **style: Any) -> None:
    """A marker with the interval of the PSNR and the 5th to 95th percentile of the time."""
    low, high = psnr["interval"] or (psnr["value"],) * 2
    across = [[max(0.0, ms["value"] - ms["low"])], [max(0.0, ms["high"] - ms["value"])]]
    up = [[max(0.0, psnr["value"] - low)], [max(0.0, high - psnr["value"])]]
    axes.errorbar(
        ms["value"], psnr["value"], yerr=up, xerr=across, markersize=7, capsize=2, **style
    )


def whole(held: FidelitySet, at: Sequence[int], outputs: Mapping[str, Tensor], path: Path) -> None:
    """Rows of photo, teacher and every student; `outputs` holds each one's pictures `at`."""
    columns = _columns(held, at, outputs)
    rows = [[to_float(each[row]) for each in columns.values()] for row in range(len(at))]
    save_png(sheet(rows, list(columns)), path)


def zoomed(held: FidelitySet, at: Sequence[int], outputs: Mapping[str, Tensor], path: Path) -> None:
    """The same around the face, every pixel shown as a square: lines, not a resampler's taste."""
    columns = _columns(held, at, outputs)
    rows = [
        [to_float(_enlarged(each[row], held, i)) for each in columns.values()]
        for row, i in enumerate(at)
    ]
    save_png(sheet(rows, list(columns)), path)


def _columns(
    held: FidelitySet, at: Sequence[int], outputs: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    where = list(at)
    return {"photo": held.photo[where], "teacher": held.teacher[where]} | dict(outputs)


def _enlarged(picture: Tensor, held: FidelitySet, i: int) -> Tensor:
    """uint8 (3, ≤ 256, ≤ 256) around the middle of the face."""
    box, side = held.boxes[i], min(ZOOM, held.size)
    assert box is not None
    middles = (box.top + box.height // 2, box.left + box.width // 2)
    top, left = (min(max(0, middle - side // 2), held.size - side) for middle in middles)
    cut = picture[:, top : top + side, left : left + side]
    return cut.repeat_interleave(ENLARGED, -1).repeat_interleave(ENLARGED, -2)
