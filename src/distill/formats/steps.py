"""One network in several formats: each made aside, measured beside float32, shown in one table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from torch import Tensor

from distill import exporting
from distill.errors import DistillError
from distill.exporters.base import Format, Source
from distill.exporters.catalogue import FORMATS
from distill.exporters.comparison import Comparison
from distill.formats import pictures, story
from distill.formats.making import compare, remove
from distill.formats.pictures import Measured
from distill.formats.subject import Subject
from distill.nodes import no_such
from distill.settings import Export
from distill.students.fold import fold_batchnorm
from distill.weights import aside

PAGES = ("formats.json", "formats.md")


def chosen(names: str | Sequence[str], stem: str = "student") -> list[Format]:
    """The formats of these names, each once, float32 first: it is always made.

    Raises DistillError for an unknown name.
    """
    typed = [names] if isinstance(names, str) else list(names)
    for name in typed:
        if name not in FORMATS:
            raise DistillError(no_such(f"formats={name}", list(FORMATS), "format"))
    return [FORMATS[name](stem) for name in FORMATS if name == "onnx" or name in typed]


def export(subject: Subject, settings: Export, photos: Tensor, folder: Path) -> None:
    """Write the float32 ONNX file, then the other formats, formats.json and formats.md.

    What other formats of another network left in the folder goes. Raises DistillError when the
    float32 file is over a limit (then there is no format at all), and at the end when a format
    could not be made or draws too differently. A U-Net's size story is told in any case.
    """
    formats = chosen(settings.formats or subject.formats, subject.stem)
    held_out = pictures.measured(subject, settings.photos) if len(formats) > 1 else None
    try:
        target = exporting.export(subject, settings, photos, folder)
    except DistillError:
        _forget(folder, subject.stem)
        raise
    if _digest(target) != _noted(folder, subject.stem):
        _forget(folder, subject.stem)
    if held_out is None:
        story.tell(subject, folder)
        return
    source = _source(subject, settings, target)
    remove(folder, PAGES)  # they would speak of files that are gone
    rows = compare(formats, source, subject.network, held_out, folder)
    story.tell(subject, folder)
    _show(Comparison(rows, _facts(subject, target, held_out), subject.stem), folder)


def _source(subject: Subject, settings: Export, target: Path) -> Source:
    return Source(
        fold_batchnorm(subject.network),
        target,
        subject.exporter,
        subject.trained["channels"],
        cache(partial(pictures.calibration, subject, settings.calibration)),
        settings.tflite.python,
    )


def _facts(subject: Subject, target: Path, held_out: Measured) -> dict[str, Any]:
    return {
        subject.stem: _digest(target),
        "size": subject.side,
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


def _forget(folder: Path, stem: str) -> None:
    """Remove all formats but the float32 file, which its own step looks after, and their pages."""
    for each in FORMATS.values():
        if each.name != "onnx":
            remove(folder, each(stem).files)
    remove(folder, PAGES)


def _noted(folder: Path, stem: str) -> str | None:
    with suppress(OSError, ValueError, KeyError, TypeError):
        return json.loads((folder / PAGES[0]).read_text())[stem]
    return None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
