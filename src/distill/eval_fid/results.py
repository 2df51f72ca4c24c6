"""An evaluation's results for people: JSON, Markdown, a table on the terminal, a contact sheet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from torch import Tensor

from distill.core.arrays import save_png
from distill.core.errors import counted
from distill.core.files import write_json, write_whole
from distill.core.images import sheet, to_float
from distill.eval_fid import whole_pictures

Row = dict[str, Any]


def write(results: Row, folder: Path) -> None:
    """results.json, results.md and the same table on the terminal."""
    lines = _lines(results)
    write_json(folder / "results.json", results)
    table = markdown([("figure", "value", "95 % interval"), *lines])
    sizes = whole_pictures.table(results["sizes"]) if results.get("sizes") else []
    if sizes:
        table += ["", *markdown(sizes)]
    write_whole(folder / "results.md", "\n".join([*table, "", *_notes(results)]) + "\n")
    screen = Table("figure", "value", "95 % interval")
    for line in lines:
        screen.add_row(*line)
    Console().print(screen)
    if sizes:  # wide: a line each figure, a column each output
        screen = Table("whole pictures", *(f"{name}, {size}" for size, name, *_ in sizes[1:]))
        for line in list(zip(*sizes, strict=True))[2:]:
            screen.add_row(*line)
        Console().print(screen)
    for note in _notes(results):
        print(note)
    print(f"results: {folder / 'results.json'}")


def markdown(lines: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table, the first of them its header."""
    head, *rows = (f"| {' | '.join(cells)} |" for cells in lines)
    return [head, "|" + " --- |" * len(lines[0]), *rows]


def write_sheet(columns: Iterable[Tensor], titles: Sequence[str], count: int, folder: Path) -> None:
    """contact_sheet.png: of a student photo | teacher | student, the paper's Figure 1.

    `columns` are uint8 (n, 3, H, W), of which the first `count` rows are shown.
    """
    rows = zip(*(to_float(column[:count]) for column in columns), strict=False)
    save_png(sheet(list(rows), titles), folder / "contact_sheet.png")
    print(f"contact sheet: {folder / 'contact_sheet.png'}")


def _lines(results: Row) -> list[tuple[str, str, str]]:
    lines = []
    for name, row in (results.get("distances") or {}).items():
        lines.append((f"{results['fid_name']}, {name}", f"{row['value']:.3f}", _span(row)))
        if row["kid"] is not None:
            lines.append((f"{results['kid_name']}, {name}", f"{1000 * row['kid']:.3f}", ""))
    for name, row in (results.get("similarity", {}) | results.get("drawing", {})).items():
        lines.append((name, f"{row['value']:.4g}", _span(row)))
    if results["fid_missing"]:
        lines.insert(0, ("FID", "missing", ""))
    return lines


def _notes(results: Row) -> list[str]:
    counts = results.get("pictures", "none")
    if isinstance(counts, dict):  # of two domains
        counts = ", ".join(f"{count} of {domain}" for domain, count in counts.items())
    notes = [f"pictures: {counts}" + (f", side: {results['side']}" if "side" in results else "")]
    notes += [f"remark: {results['remark']}"] if "remark" in results else []
    notes += [results[key] for key in ("left_out", "unchecked") if key in results]
    how = results.get("resampled")
    if how and how["rounds"]:
        of = (
            f"{counted(how['groups'], 'group')} (one person's pictures)"
            if how["groups"]
            else "the pictures"
        )
        said = f"intervals: {counted(how['rounds'], 'resample')} of {of}"
        if results.get("distances"):
            said += "; that of a distance is of its value at so few pictures, not of all there are"
        notes.append(said)
    if results["features"]:
        notes += [f"features: {results['features']}", f"resize: {results['resize']}"]
    return notes + ([f"warning: {results['warning']}"] if "warning" in results else [])


def _span(row: Row) -> str:
    return "" if row["interval"] is None else f"{row['interval'][0]:.4g} – {row['interval'][1]:.4g}"
