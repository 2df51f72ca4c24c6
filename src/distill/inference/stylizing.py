"""The steps of distill.stylize: which student draws, every file in turn, and the count."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

from tqdm import tqdm

from distill import zoo
from distill.config import compose, trained
from distill.config.settings import Prepare, Stylize
from distill.core import sessions
from distill.core.errors import DistillError
from distill.core.progress import bar
from distill.data.photos import BadPhoto
from distill.inference import portraits, videos
from distill.inference.jobs import StylizeJob
from distill.inference.onnx_student import Hand, Painter
from distill.inference.pictures import Studio, TeacherHand, draw_one
from distill.inference.video.containers import BadVideo
from distill.models import build
from distill.runs import run_folder

DEFAULT_STYLE = "hayao"


def choose(settings: Stylize) -> tuple[Painter, str]:
    """The student that was asked for, and its name. Raises DistillError, for two of them too."""
    given = {"style": settings.style.name, "model": settings.model, "run": settings.run}
    named = [f"{key}={value}" for key, value in given.items() if value is not None]
    if len(named) > 1:
        raise DistillError(f"{' and '.join(named)}: name one student only")
    path, name = _named(settings)
    direction = settings.direction
    return of_file(path, settings.threads, direction), name + f"-{direction}" * (
        direction != "AtoB"
    )


def _named(settings: Stylize) -> tuple[Path, str]:
    if settings.run is not None:
        return run_folder.named(settings.run, settings.runs).checkpoint("best"), settings.run
    if settings.model is not None:
        path = Path(settings.model).expanduser()
        return path, path.stem
    name = settings.style.name or DEFAULT_STYLE
    return zoo.find(name), name


def studio(student: Painter, jobs: Sequence[StylizeJob], settings: Stylize) -> Studio:
    """The student with what the settings want beside it. Raises DistillError without weights."""
    find = None if settings.face == "off" else portraits.finder(settings.detector)
    teacher = _teacher(settings) if settings.compare else None
    taken = frozenset(path.resolve() for job in jobs for path in (job.source, job.target))
    return Studio(student, teacher, find, taken)


def _teacher(settings: Stylize) -> Hand | None:
    """Of a shipped student or a run, where it is at hand; a line says where it is not."""
    if settings.run is not None:
        run = run_folder.named(settings.run, settings.runs).config()
        if run.get("recipe", "distill") != "distill":
            print(f"compare=true: recipe={run['recipe']} has no teacher", file=sys.stderr)
            return None
        source = trained.source_of(run)
    elif settings.model is None and (name := settings.style.name or DEFAULT_STYLE) in _styles():
        source = compose.load("prepare", [f"style={name}"], Prepare)
    else:
        return None
    try:
        if found := build.teacher_at_hand(source.style, source.teacher):
            return TeacherHand(found)
        why = f"{source.style.file} is not at hand; put it into a folder that DISTILL_WEIGHTS names"
    except DistillError as error:  # a run that is its teacher may have gone elsewhere
        why = str(error)
    print(f"compare=true: without the teacher, {why}", file=sys.stderr)
    return None


def _styles() -> list[str]:
    return compose.choices("style")


def of_file(
    path: Path, threads: int | None = None, direction: Literal["AtoB", "BtoA"] = "AtoB"
) -> Painter:
    """A network in an ONNX file or a checkpoint. Raises DistillError for any other file.

    A checkpoint is exported in memory: ONNX Runtime draws faster than PyTorch, and there is one
    way to draw. `direction` chooses one of CycleGAN's two generators.
    """
    if path.suffix.lower() == ".ckpt":
        from distill.exporters.subject import student_graph

        return Painter(student_graph(path, direction), str(path), threads)
    if direction != "AtoB":
        raise DistillError(f"direction={direction}: {path} draws one way; leave direction out")
    return Painter(sessions.load(path), str(path), threads)


def draw_all(jobs: Sequence[StylizeJob], student: Painter, settings: Stylize) -> None:
    """Draw every picture and video; one that cannot be is skipped with a line.

    Raises DistillError (exit status 1) when any was skipped.
    """
    videos.check(jobs, settings)
    drawers = studio(student, jobs, settings)
    failed: list[StylizeJob] = []
    partly: list[StylizeJob] = []
    several = len(jobs) > 1
    with bar(len(jobs), f" {_what(jobs)}", "drawing") if several else nullcontext() as progress:
        for job in jobs:
            draw = videos.draw_one if job.film else draw_one
            try:
                draw(job, drawers, settings)
            except (BadPhoto, BadVideo) as reason:
                tqdm.write(f"skipped {str(job.source)!r}: {reason}", file=sys.stderr)
                failed.append(job)
            except videos.NotWhole as reason:
                tqdm.write(f"{str(job.source)!r}: drawn, but {reason}", file=sys.stderr)
                partly.append(job)
            if progress is not None:
                progress.update()
    _count(jobs, failed, partly)


def _count(
    jobs: Sequence[StylizeJob], failed: Sequence[StylizeJob], partly: Sequence[StylizeJob]
) -> None:
    done = len(jobs) - len(failed)
    if len(jobs) == 1 and done:
        print(f"drawn: {str(jobs[0].target)!r}")
    elif done:
        folder = os.path.commonpath([os.path.abspath(job.target.parent) for job in jobs])
        print(f"drawn: {done} {_what(jobs)}, in {os.path.relpath(folder)!r}")
    if failed:
        raise DistillError(f"{len(failed)} of {len(jobs)} {_what(jobs)} skipped")
    if partly:
        raise DistillError(f"{len(partly)} of {len(jobs)} {_what(jobs)} not whole")


def _what(jobs: Sequence[StylizeJob]) -> str:
    kinds = {job.film for job in jobs}
    return "files" if len(kinds) > 1 else "videos" if kinds == {True} else "pictures"
