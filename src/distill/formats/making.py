"""Formats made, tried and timed: from a network to the rows of the table."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from distill.data.pictures import over_white
from distill.errors import DistillError
from distill.exporters.base import Format, Runner, Source
from distill.exporters.comparison import Row
from distill.exporters.report import compressed_size
from distill.formats.pictures import Measured
from distill.metrics.similarity import psnr
from distill.metrics.timing import Times, interleave, ratio

ROUNDS = 15


@dataclass(frozen=True)
class Made:
    """A format that is in the folder, and how it draws and how long it takes, where it runs."""

    format: Format
    drawn: Tensor | None
    run: Runner | None


def compare(
    formats: Sequence[Format], source: Source, student: nn.Module, held_out: Measured, folder: Path
) -> list[Row]:
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
        Row(name, problem=m) if isinstance(m, str) else _row(m, times, expected, held_out, folder)
        for name, m in made.items()
    ]


def _make(each: Format, source: Source, folder: Path, photos: Tensor) -> Made:
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


def _convert(each: Format, source: Source, scratch: Path) -> None:
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
) -> Row:
    each, drawn = made.format, made.drawn
    files = [path for name in each.files for path in _parts(folder / name)]
    sizes = sum(p.stat().st_size for p in files), sum(map(compressed_size, files))
    if drawn is None:
        return Row(each.name, each.files, *sizes)
    same = psnr(drawn, expected)
    teacher = held_out.teacher
    like = None if teacher is None else float(psnr(over_white(drawn), over_white(teacher)).mean())
    against = ratio(times[each.name], times["onnx"])
    return Row(
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
