"""Pages for people: their tables, and what distill.check report=NAME writes."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from pathlib import Path


class Report(ABC):
    """A page on a trained run; conf/report/ names the class."""

    @abstractmethod
    def write(self, run: str | None, runs: str, output: str | None) -> Path:
        """Write the page of the run of that name in the folder `runs`, None: of the latest, and
        give its file."""


def one_line(text: object) -> str:
    """Text that came in a file, as it may stand in a list or a table of Markdown."""
    return " ".join(str(text).split()).replace("|", "\\|")


def markdown_table(rows: Sequence[Sequence[object]], right: Collection[int] = ()) -> str:
    """A table of Markdown, its headings first; the columns numbered in `right` end at the right."""
    rules = ["---:" if column in right else "---" for column in range(len(rows[0]))]
    lines = (map(one_line, row) for row in (rows[0], rules, *rows[1:]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
