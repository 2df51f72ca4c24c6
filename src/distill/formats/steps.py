"""One student in several formats: each made aside, measured beside float32, shown in one table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from distill import exporting
from distill.errors import DistillError
from distill.exporters.base import Format, Source
from distill.exporters.catalogue import FORMATS
from distill.exporters.comparison import Comparison
from distill.exporters.onnx import OnnxExporter
from distill.formats import pictures
from distill.formats.making import compare, remove
from distill.formats.pictures import Measured
from distill.nodes import no_such
from distill.settings import Export
from distill.students.fold import fold_batchnorm
from distill.weights import aside

PAGES = ("formats.json", "formats.md")


def chosen(names: str | Sequence[str]) -> list[Format]:
    """The formats of these names, each once, float32 first: it is always made.

    Raises DistillError for an unknown name.
    """
    typed = [names] if isinstance(names, str) else list(names)
    for name in typed:
        if name not in FORMATS:
            raise DistillError(no_such(f"formats={name}", list(FORMATS), "format"))
    return [FORMATS[name]() for name in FORMATS if name == "onnx" or name in typed]


def export(
    student: nn.Module,
    trained: dict[str, Any],
    exporter: OnnxExporter,
    settings: Export,
    photos: Tensor,
    folder: Path,
) -> None:
    """Write student.onnx, then the other formats, formats.json and formats.md.

    What other formats of another student left in the folder goes. Raises DistillError when
    student.onnx is over a limit (then there is no format at all), and at the end when a format
    could not be made or draws too differently.
    """
    formats = chosen(settings.formats)
    held_out = _pictures(trained, settings, exporter.size) if len(formats) > 1 else None
    try:
        target = exporting.export(student, trained, exporter, settings, photos, folder)
    except DistillError:
        _forget(folder)
        raise
    if _digest(target) != _noted(folder):
        _forget(folder)
    if held_out is not None:
        source = _source(student, trained, exporter, settings, target)
        remove(folder, PAGES)  # they would speak of files that are gone
        rows = compare(formats, source, student, held_out, folder)
        _show(Comparison(rows, _facts(source, held_out)), folder)


def _pictures(trained: dict[str, Any], settings: Export, size: int) -> Measured:
    return pictures.measured(trained, settings.photos, size)


def _source(
    student: nn.Module,
    trained: dict[str, Any],
    exporter: OnnxExporter,
    settings: Export,
    target: Path,
) -> Source:
    read = partial(pictures.calibration, trained, settings.calibration, exporter.size)
    return Source(
        fold_batchnorm(student),
        target,
        exporting.with_profile(exporter, trained),
        trained["channels"],
        cache(read),
        settings.tflite.python,
    )


def _facts(source: Source, held_out: Measured) -> dict[str, Any]:
    return {
        "student": _digest(source.onnx),
        "size": source.exporter.size,
        "photos": held_out.where,
        "pictures": len(held_out.photos),
    }


def _show(comparison: Comparison, folder: Path) -> None:
    comparison.print()
    pages = (json.dumps(comparison.to_json(), indent=2) + "\n", comparison.to_markdown())
    for name, text in zip(PAGES, pages, strict=True):
        with aside(folder / name) as page:
            page.write_text(text)
    print(f"formats: {folder / PAGES[0]}, {folder / PAGES[1]}")
    if lines := comparison.lines:
        raise DistillError("; ".join(lines))


def _forget(folder: Path) -> None:
    """Remove all formats but student.onnx, which the export step looks after, and their pages."""
    for each in FORMATS.values():
        if each.name != "onnx":
            remove(folder, each.files)
    remove(folder, PAGES)


def _noted(folder: Path) -> str | None:
    with suppress(OSError, ValueError, KeyError, TypeError):
        return json.loads((folder / PAGES[0]).read_text())["student"]
    return None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
