"""One network in several formats: each made aside, measured beside float32, shown in one table."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from distill.config.settings import Export
from distill.core.errors import DistillError
from distill.core.files import aside
from distill.core.images import over_white
from distill.core.nodes import no_such
from distill.exporters import checked, samples, sizes
from distill.exporters.budget import compressed_size
from distill.exporters.catalogue import FORMATS
from distill.exporters.comparison import Comparison, FormatRow
from distill.exporters.format import ConversionSource, Format, Runner
from distill.exporters.samples import Measured
from distill.exporters.subject import Subject
from distill.metrics.similarity import psnr
from distill.metrics.timing import Times, interleave, ratio
from distill.models.fold import fold_batchnorm

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
    held_out = samples.measured(subject, settings.photos) if len(formats) > 1 else None
    try:
        target = checked.export(subject, settings, photos, folder)
    except DistillError:
        _forget(folder, subject.stem)
        raise
    if _digest(target) != _noted(folder, subject.stem):
        _forget(folder, subject.stem)
    if held_out is None:
        sizes.tell(subject, folder)
        return
    source = _source(subject, settings, target)
    remove(folder, PAGES)  # they would speak of files that are gone
    rows = compare(formats, source, subject.network, held_out, folder)
    sizes.tell(subject, folder)
    _show(Comparison(rows, _facts(subject, target, held_out), subject.stem), folder)


def _source(subject: Subject, settings: Export, target: Path) -> ConversionSource:
    return ConversionSource(
        fold_batchnorm(subject.network),
        target,
        subject.exporter,
        subject.trained["channels"],
        cache(partial(samples.calibration, subject, settings.calibration)),
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


ROUNDS = 15


@dataclass(frozen=True)
class Made:
    """A format that is in the folder, and how it draws and how long it takes, where it runs."""

    format: Format
    drawn: Tensor | None
    run: Runner | None


def compare(
    formats: Sequence[Format],
    source: ConversionSource,
    student: nn.Module,
    held_out: Measured,
    folder: Path,
) -> list[FormatRow]:
    """Make all formats; those that run are timed in turn, so that what slows one slows all."""
    made: dict[str, Made | str] = {}
    for each in formats:
        try:
            made[each.name] = _make(each, source, folder, held_out.photos)
        except DistillError as problem:
            print(f"left out {problem}")
            made[each.name] = str(problem)
    times = _times([m for m in made.values() if isinstance(m, Made)], held_out.photos)
    expected = _drawn(student, held_out.photos)
    return [
        FormatRow(name, problem=m)
        if isinstance(m, str)
        else _row(m, times, expected, held_out, folder)
        for name, m in made.items()
    ]


def _make(each: Format, source: ConversionSource, folder: Path, photos: Tensor) -> Made:
    """Convert in a folder aside, try it there, and move what is whole to its place."""
    if each.name == "onnx":  # the export step has made it
        return _try(each, folder, photos)
    with tempfile.TemporaryDirectory(prefix=f".{each.name}.", dir=folder) as name:
        scratch = Path(name)
        remove(folder, each.files)
        print(f"making {each.name}", flush=True)
        _convert(each, source, scratch)
        made = _try(each, scratch, photos)
        for file in reversed(each.files):
            os.replace(scratch / file, folder / file)
    return made


def _convert(each: Format, source: ConversionSource, scratch: Path) -> None:
    try:
        each.convert(source, scratch)
    except (DistillError, OSError):
        raise
    except Exception as error:  # converters raise whatever they like
        said = " ".join(str(error).split())[:200]
        reason = f"{type(error).__name__}: {said}"
        raise DistillError(f"{each.name}: its converter failed ({reason})") from error


def _try(each: Format, folder: Path, photos: Tensor) -> Made:
    try:
        run = each.open(folder)
        return Made(each, _run_all(run, photos) if run else None, run)
    except DistillError:
        raise
    except Exception as error:  # runtimes have classes of their own
        said = " ".join(str(error).split())[:200]
        raise DistillError(f"{each.name}: {each.runs_in} cannot run it ({said})") from error


def _run_all(run: Runner, photos: Tensor) -> Tensor:
    return torch.cat([torch.from_numpy(run(photo[None].numpy())) for photo in photos])


@torch.inference_mode()
def _drawn(student: nn.Module, photos: Tensor) -> Tensor:
    return torch.cat([student.eval()(photo[None]) for photo in photos])


def _times(made: Iterable[Made], photos: Tensor) -> dict[str, Times]:
    photo = photos[:1].numpy()
    calls: dict[str, Callable[[], object]] = {
        each.format.name: partial(each.run, photo) for each in made if each.run
    }
    return interleave(calls, ROUNDS)


def _row(
    made: Made, times: dict[str, Times], expected: Tensor, held_out: Measured, folder: Path
) -> FormatRow:
    each, drawn = made.format, made.drawn
    files = [path for name in each.files for path in _parts(folder / name)]
    sizes = sum(p.stat().st_size for p in files), sum(map(compressed_size, files))
    if drawn is None:
        return FormatRow(each.name, each.files, *sizes)
    same = psnr(drawn, expected)
    teacher = held_out.teacher
    like = None if teacher is None else float(psnr(over_white(drawn), over_white(teacher)).mean())
    against = ratio(times[each.name], times["onnx"])
    return FormatRow(
        each.name,
        each.files,
        *sizes,
        mean=float(same.mean()),
        worst=float(same.min()),
        teacher=like,
        ms=times[each.name].median,
        times_float=(against.median, against.low, against.high),
        least=each.least,
    )


def _parts(path: Path) -> list[Path]:
    return sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]


def remove(folder: Path, names: Iterable[str]) -> None:
    """Files and folders of these names, where they are there."""
    for name in names:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
