"""The report's tables and its sheet of pictures."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from against_teacher.heldout_set import FidelitySet
from against_teacher.scored_students import RESERVED
from distill.core.arrays import save_png
from distill.core.files import write_json, write_whole
from distill.core.images import sheet, to_float
from distill.core.process import cores
from distill.core.report import markdown_table
from distill.eval_fid.line_scores import INK, by_kind
from distill.eval_fid.whole_pictures import table
from distill.metrics.timing import load_average

Row = dict[str, Any]
Scores = Mapping[str, Mapping[str, Row]]  # student → figure → value, interval, pictures
DIGITS = {"SSIM": 4, "LPIPS": 4} | dict.fromkeys(INK, 3)
MORE_IS_BETTER = ("PSNR", "SSIM", "ink")
AS_THE_TEACHER = ("ink mass", "sharpness")  # best at 1: more is too much
COSTS = {  # how the columns are called
    "ms": "ms, median (5th – 95th percentile)",
    "ratio": "ms to the first, round by round",
    "macs": "MACs (M)",
    "parameters": "parameters",
    "graph_parameters": "values in the graph",
    "living": "nonzero weights",
    "bytes": "bytes",
}


@dataclass(frozen=True)
class Table:
    """A titled Markdown table; `rows` hold the cells of each `columns` entry."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __str__(self) -> str:
        return f"## {self.title}\n\n{markdown_table([self.columns, *self.rows])}\n"


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
    """Tables of each subset, one of whole pictures, one of what each student costs, and notes."""
    subsets = figures["subsets"].items()
    scores = [
        each
        for name, row in subsets
        for each in scores_tables(name, row["pictures"], row["scores"])
    ]
    notes = Table("Notes", ["about", "note"], [list(note) for note in figures["notes"]])
    if figures["sizes"]:
        head, *rows = table(figures["sizes"])
        scores.append(Table("Whole pictures by their long side", head, rows))
    return [*scores, _cost_table(figures["cost"]), notes]


def scores_tables(subset: str, pictures: int, scores: Scores) -> list[Table]:
    """How close and how drawn; each with the rows and columns that it has."""
    return [scores_table(subset + title, pictures, part) for title, part in by_kind(scores).items()]


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
    if column in AS_THE_TEACHER:
        return min(values, key=lambda name: abs(values[name] - 1))
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


def whole(held: FidelitySet, at: Sequence[int], outputs: Mapping[str, Tensor], path: Path) -> None:
    """Rows of photo, teacher and every student; `outputs` holds each one's pictures `at`."""
    where = list(at)
    columns = {"photo": held.photo[where], "teacher": held.teacher[where]} | dict(outputs)
    rows = [[to_float(each[row]) for each in columns.values()] for row in range(len(at))]
    save_png(sheet(rows, list(columns)), path)
