"""Whether an export keeps its budget, as rows that a table and a report can show."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

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
    def none_of(cls, name: str, found: Sequence[str]) -> BudgetCheck:
        return cls(name, ", ".join(found) or "none", None, not found)


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


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
