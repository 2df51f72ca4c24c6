"""Files held against a profile, and what was found, for people and as JSON."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from distill.check import lens_studio, shared
from distill.check.onnx_graph import Graph
from distill.check.shared import Finding, Profile
from distill.core.errors import DistillError, counted
from distill.core.files import home_path, write_whole


@dataclass(frozen=True)
class Result:
    """What was found in a file; `graph` is None and `error` says why where it cannot be read."""

    path: Path
    graph: Graph | None
    all_findings: Sequence[Finding] = ()
    settings: lens_studio.ImportSettings | None = None
    error: str = ""

    @property
    def findings(self) -> list[Finding]:
        return [each for each in self.all_findings if each.level == "finding"]

    @property
    def ok(self) -> bool:
        return not self.error and not self.findings


def check(path: Path, profile: Profile) -> Result:
    """One file against the rules; a file that cannot be read is a result too."""
    try:
        profile = profile.of(path)
        graph = profile.read(path)
    except DistillError as error:
        return Result(path, None, error=str(error))
    try:
        settings = lens_studio.settings(graph) if profile.name == "snapml" else None
        return Result(path, graph, profile.check(graph), settings)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError):
        # Attributes of another kind than their operator's: no rule can be asked about such a file.
        if problems := shared.invalid(graph):
            return Result(path, graph, problems)
        raise


SIGNS = {"finding": "[bold red]✗[/]", "note": "[yellow]•[/]"}
NAMED = 2  # nodes of one finding that the table names; the rest are counted


def show(results: Sequence[Result], profile: Profile) -> None:
    """Tables on the terminal; files that cannot be read on standard error."""
    console = Console()
    for result in results:
        if result.graph is None:
            print(f"skipped: {result.error}", file=sys.stderr)
            continue
        graph, count = result.graph, len(result.findings)
        verdict = f"{counted(count, 'finding')}, " if count else "fits, "
        opset = f"opset {graph.opset}, " if graph.opset else ""
        facts = f"{graph.size:,} bytes, {opset}{counted(len(graph.nodes), 'node')}"
        summary = f"{profile.name}: {verdict}{counted(len(result.all_findings) - count, 'note')}"
        headline = escape(f"{result.path} · {facts} · {summary}")
        console.print(f"\n{headline}", highlight=False, soft_wrap=True)
        if result.all_findings:
            _show_findings(console, result.all_findings)
        if result.settings:
            console.print(_settings_text(result.settings), highlight=False)


def _show_findings(console: Console, findings: Sequence[Finding]) -> None:
    """One row for findings of one cause; sources are numbered below."""
    sources = list(dict.fromkeys(each.source for each in findings))
    table = Table("", "what and where, why, what to do", show_lines=True)
    cause = attrgetter("level", "why", "source", "advice")
    for _, group in groupby(sorted(findings, key=cause), key=cause):
        nodes: dict[str, list[str]] = {}
        for each in group:
            nodes.setdefault(each.what, []).append(each.node)
        lines = []  # for all nodes of which the same is said; the first ones are named
        for what, names in nodes.items():
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            lines.append(f"[bold]{escape(what)}[/]: {escape(', '.join(names[:NAMED]))}{more}")
        lines.append(f"{escape(each.why)} \\[{sources.index(each.source) + 1}]")
        table.add_row(SIGNS[each.level], "\n".join([*lines, f"→ {escape(each.advice)}"]))
    console.print(table)
    for number, source in enumerate(sources, 1):
        console.print(f"\\[{number}] {escape(source)}", highlight=False)


def _settings_text(settings: lens_studio.ImportSettings) -> str:
    """For people, as the dialogue has it: input on the left, output on the right."""
    limits = "" if settings.ours else " (as far as the file tells)"
    order = settings.channels or "RGB or BGR, the file does not say"
    input_scale = output_scale = "its range is not in the file"
    if scaling := settings.input.input_scaling:
        input_scale = f"scale {scaling[0]:.6g}, bias {scaling[1]:g}"
    else:
        input_scale += "; for 0 … 1 scale 0.00392157, bias 0, for -1 … 1 scale 0.00784314, bias -1"
    if (scaling := settings.output.output_scaling) and (span := settings.output.range):
        output_scale = (
            f"scale {scaling[0]:.6g}, bias {scaling[1]:g} (values {span[0]:g} … {span[1]:g})"
        )
    names = [escape(f"{side.name} {side.dims}") for side in (settings.input, settings.output)]
    return (
        f"Lens Studio import settings{limits}:\n"
        f"  input  {names[0]}, {order}: {input_scale}\n"
        f"  output {names[1]}: {output_scale}"
    )


def write(results: Sequence[Result], profile: Profile, output: str) -> None:
    """Everything found, node by node, as JSON."""
    report = {
        "profile": profile.name,
        "title": profile.title,
        "ok": all(result.ok for result in results),
        "files": [_json(result) for result in results],
    }
    target = home_path(output)
    write_whole(target, json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    print(f"report: {target}")


def _json(result: Result) -> dict[str, Any]:
    if result.graph is None:
        return {"file": str(result.path), "ok": False, "error": result.error}
    graph = result.graph
    imported: dict[str, Any] | None = None
    if settings := result.settings:
        input_scale = settings.input.input_scaling or (None, None)
        output_scale = settings.output.output_scaling or (None, None)
        imported = asdict(settings) | {
            "input_scale": input_scale[0], "input_bias": input_scale[1],
            "output_scale": output_scale[0], "output_bias": output_scale[1],
        }  # fmt: skip
    return {
        "file": str(result.path),
        "ok": result.ok,
        "bytes": graph.size,
        "opset": graph.opset,
        "operators": dict(sorted(Counter(node.operator for node in graph.nodes).items())),
        "findings": [asdict(each) for each in result.findings],
        "notes": [asdict(each) for each in result.all_findings if each.level == "note"],
        "import": imported,
    }


def end(results: Sequence[Result], profile: Profile) -> None:
    """Raises DistillError (exit status 1) where a file does not fit or cannot be read."""
    unread = sum(1 for result in results if result.error)
    unfit = sum(1 for result in results if not result.ok) - unread
    parts = [f"{unfit} of {len(results)} do not fit {profile.name}"] if unfit else []
    parts += [f"{unread} cannot be read"] if unread else []
    if parts:
        raise DistillError(", ".join(parts))
