"""The steps of distill.stylize: which student draws, every picture in turn, and the count."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from PIL import Image
from tqdm import tqdm

from distill import brush, painter, zoo
from distill.data.photos import BadPhoto, read_photo
from distill.data.pictures import PNG
from distill.errors import DistillError
from distill.painter import Painter
from distill.progress import bar
from distill.settings import RunChoice, Stylize
from distill.targets import Job
from distill.weights import aside

DEFAULT_STYLE = "hayao"
# Flat colours and hard lines: JPEG's half-size colours would fray them.
_JPEG = ("JPEG", {"quality": 95, "subsampling": 0})
FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    ".jpg": _JPEG,
    ".jpeg": _JPEG,
    ".png": ("PNG", PNG),
    ".webp": ("WEBP", {"quality": 95}),
}


def choose(settings: Stylize) -> tuple[Painter, str]:
    """The student that was asked for, and its name. Raises DistillError, for two of them too."""
    given = {"style": settings.style.name, "model": settings.model, "run": settings.run}
    named = [f"{key}={value}" for key, value in given.items() if value is not None]
    if len(named) > 1:
        raise DistillError(f"{' and '.join(named)}: name one student only")
    if settings.run is not None:
        return _of_run(settings), settings.run
    if settings.model is not None:
        path = Path(settings.model).expanduser()
        return of_file(path, settings.threads), path.stem
    name = settings.style.name or DEFAULT_STYLE
    return of_file(zoo.find(name), settings.threads), name


def _of_run(settings: Stylize) -> Painter:
    from distill.runs import find_run

    choice = RunChoice(run=settings.run, runs=settings.runs, checkpoint="best", output=None)
    return _of_checkpoint(find_run(choice).checkpoint("best"), settings.threads)


def of_file(path: Path, threads: int | None = None) -> Painter:
    """A student in an ONNX file or a checkpoint. Raises DistillError for any other file."""
    if path.suffix.lower() == ".ckpt":
        return _of_checkpoint(path, threads)
    return Painter(painter.load(path), str(path), threads)


def _of_checkpoint(path: Path, threads: int | None) -> Painter:
    """Exported in memory: ONNX Runtime draws faster than PyTorch, and there is one way to draw."""
    from distill import build
    from distill.exporters.onnx import OnnxExporter
    from distill.students.fold import fold_batchnorm

    student, _ = build.load_student(path)
    return Painter(OnnxExporter().export(fold_batchnorm(student)), str(path), threads)


def draw_all(jobs: Sequence[Job], student: Painter, settings: Stylize) -> None:
    """Draw every picture; one that cannot be is skipped with a line.

    Raises DistillError (exit status 1) when any was skipped.
    """
    skipped = 0
    several = len(jobs) > 1
    with bar(len(jobs), " pictures", "drawing") if several else nullcontext() as progress:
        for job in jobs:
            try:
                draw_one(job, student, settings)
            except BadPhoto as reason:
                tqdm.write(f"skipped {str(job.source)!r}: {reason}", file=sys.stderr)
                skipped += 1
            if progress is not None:
                progress.update()
    _count(jobs, skipped)


def draw_one(job: Job, student: Painter, settings: Stylize) -> None:
    """One picture, read, drawn and written whole. Raises BadPhoto with the reason where not."""
    photo = read_photo(job.source, least=1, alpha=True)
    drawn = brush.stylize(photo, student, settings.size)
    if settings.compare:
        drawn = brush.side_by_side(photo, drawn)
    content = encoded(drawn, job.target.suffix.lower())
    with aside(job.target) as temporary:
        temporary.write_bytes(content)


def encoded(picture: Image.Image, suffix: str) -> memoryview:
    """A file's content, transparency over white where JPEG has none. Raises BadPhoto."""
    kind, options = FORMATS[suffix]
    if kind == "JPEG" and picture.mode == "RGBA":
        page = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(page, picture).convert("RGB")
    content = io.BytesIO()
    try:
        picture.save(content, kind, **options)
    except (OSError, ValueError) as error:  # WebP ends at 16383 pixels a side, JPEG at 65500
        raise BadPhoto(f"cannot be written as {suffix} ({error}); choose .png with -o") from error
    return content.getbuffer()


def _count(jobs: Sequence[Job], skipped: int) -> None:
    done = len(jobs) - skipped
    if len(jobs) == 1 and done:
        print(f"drawn: {str(jobs[0].target)!r}")
    elif done:
        folder = os.path.commonpath([os.path.abspath(job.target.parent) for job in jobs])
        print(f"drawn: {done} pictures, in {os.path.relpath(folder)!r}")
    if skipped:
        raise DistillError(f"{skipped} of {len(jobs)} pictures skipped")
