"""What came of an export: its budget, and all formats side by side."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from distill.core.errors import counted
from distill.core.report import markdown_table

REPORT = "report.json"


@dataclass(frozen=True)
class BudgetCheck:
    """One figure against its limit; `limit` None is only reported."""

    name: str
    value: float | int | str
    limit: float | int | None = None
    ok: bool = True

    @classmethod
    def at_most(cls, name: str, value: float | int, limit: float | int | None) -> BudgetCheck:
        return cls(name, value, limit, limit is None or value <= limit)

    @classmethod
    def none_of(cls, name: str, names: Sequence[str]) -> BudgetCheck:
        return cls(name, ", ".join(names) or "none", None, not names)


@dataclass(frozen=True)
class BudgetReport:
    """All checks of one export, the teacher's figures beside its own; `what` is exported."""

    checks: Sequence[BudgetCheck]
    teacher: dict[str, Any]
    facts: dict[str, Any]
    what: str = "student"

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        checks = [asdict(check) for check in self.checks]
        return {"ok": self.ok, self.what: checks, "teacher": self.teacher, **self.facts}

    def print(self) -> None:
        """The table on the terminal; what is over its limit stands out, in colour and in words."""
        beside = ["teacher"] if self.teacher else []
        table = Table("", self.what, "limit", *beside)
        for check in self.checks:
            limit = "" if check.limit is None else _number(check.limit)
            style = None if check.ok else "bold red"
            verdict = "" if check.ok else "  ✗ over the limit"
            cells = [check.name, _number(check.value) + verdict, limit]
            cells += [_number(self.teacher.get(check.name, ""))] if beside else []
            table.add_row(*cells, style=style)
        Console().print(table)


def compressed_size(path: Path) -> int:
    """Bytes of a file after gzip, as a web server or an app store sends it."""
    return len(gzip.compress(path.read_bytes(), mtime=0))


def _number(value: float | str) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


EQUAL = 99.95  # dB, where metrics.similarity.psnr ends: differences below 1e-5
SMALLER = 0.98  # of float32's bytes: less than that is a matter of names in the file
NONE = "–"


@dataclass(frozen=True)
class FormatRow:
    """One format. `ms` and the PSNRs are None where nothing here runs it.

    PSNRs are in dB, to the float network's output (`mean`, `worst`) and to the target (`teacher`);
    `times_float` is its time over float32's with a 95 % interval. `problem` is why it was not made,
    `note` what is to be known of it.
    """

    format: str
    files: Sequence[str] = ()
    bytes: int | None = None
    gzip: int | None = None
    mean: float | None = None
    worst: float | None = None
    teacher: float | None = None
    ms: float | None = None
    times_float: tuple[float, float, float] | None = None
    least: tuple[float, float] | None = None
    problem: str = ""
    note: str = ""

    @property
    def short(self) -> bool:
        """Whether its output is further from the float network's than it may be."""
        if self.least is None or self.mean is None or self.worst is None:
            return False
        return not (self.mean >= self.least[0] and self.worst >= self.least[1])  # true of NaN

    def verdict(self, plain: FormatRow) -> str:
        """In words: smaller or faster than float32 (`plain`), or neither."""
        if self.problem:
            return "not made"
        if self.format == plain.format:
            return "the measure"
        smaller = (self.bytes or 0) < SMALLER * (plain.bytes or 0)
        faster = self.times_float is not None and self.times_float[2] < 1
        gains = [word for word, true in (("smaller", smaller), ("faster", faster)) if true]
        words = " and ".join(gains) or "neither smaller nor faster"
        if self.ms is None:
            words = f"{'smaller' if smaller else 'not smaller'}; no runtime here"
        if self.least and self.short:
            words += f"; short of {self.least[0]:g} dB mean, {self.least[1]:g} worst"
        return f"{words}; {self.note}" if self.note else words


@dataclass(frozen=True)
class Comparison:
    """The rows, float32 first, and what they were measured on; `what` was exported."""

    rows: Sequence[FormatRow]
    facts: dict[str, Any]
    what: str = "student"

    @property
    def heads(self) -> tuple[str, ...]:
        reference = "to teacher" if self.what == "student" else "to target"
        target = (reference,) if self._has_target else ()
        return ("format", "kB", "gzip", "dB to float", *target, "ms", "verdict")

    @property
    def _has_target(self) -> bool:
        return any(row.teacher is not None for row in self.rows)

    @property
    def lines(self) -> list[str]:
        """One line for each format that was not made or is too far from the float network."""
        problems = [row.problem for row in self.rows if row.problem]
        return problems + [
            f"{row.format}: {row.mean:.1f} dB mean, {row.worst:.1f} worst to the float "
            f"{self.what}, short of {row.least[0]:g} and {row.least[1]:g}; its file is kept"
            for row in self.rows
            if row.short and row.least
        ]

    def print(self) -> None:
        table = Table(*(Column(head, no_wrap=head != "verdict") for head in self.heads))
        for row in self.rows:
            odd = row.problem or row.short
            table.add_row(*self._cells(row), style="bold red" if odd else None)
        Console().print(table)
        print(self._caption())

    def to_json(self) -> dict[str, Any]:
        rows = [asdict(row) | {"verdict": row.verdict(self.rows[0])} for row in self.rows]
        return {**self.facts, "formats": rows}

    def to_markdown(self) -> str:
        rows = [self.heads, *map(self._cells, self.rows)]
        table = markdown_table(rows, right=range(1, len(self.heads) - 1))
        problems = "".join(f"\n- {line}" for line in self.lines)
        return f"{table}\n\n{self._caption()}\n{problems}".rstrip() + "\n"

    def _cells(self, row: FormatRow) -> list[str]:
        like = f"{_decibels(row.mean)}, {_decibels(row.worst)}" if row.mean is not None else NONE
        return [
            row.format,
            _thousands(row.bytes),
            _thousands(row.gzip),
            "equal" if like == "equal, equal" else like,
            *([_decibels(row.teacher)] if self._has_target else []),
            NONE if row.ms is None else f"{row.ms:.1f}",
            row.verdict(self.rows[0]),
        ]

    def _caption(self) -> str:
        reference = "the teacher" if self.what == "student" else "the pair's other side"
        also = f", mean to {reference}," if self._has_target else ""
        sizes = ["×".join(map(str, self.facts["size"]))]
        if other := self.facts.get("other_size"):
            sizes.append(f"every fourth {'×'.join(map(str, other))} too where a file takes it")
        return (
            f"PSNR: mean and worst to the float32 {self.what} in PyTorch{also} on "
            f"{counted(self.facts['pictures'], 'held-out photo')} ({self.facts['photos']}) of "
            f"{', '.join(sizes)}. ms: one thread, all formats in turn, "
            "median; faster means with 95 % confidence."
        )


def _thousands(value: int | None) -> str:
    return NONE if value is None else f"{value / 1000:,.0f}"


def _decibels(value: float | None) -> str:
    if value is None:
        return NONE
    return "equal" if value >= EQUAL else f"{value:.1f}"
