"""What distill.benchmark times: a teacher, a student, and any other ONNX files, at any size."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

import onnx
from torch import nn

from distill import zoo
from distill.config.settings import Benchmark
from distill.config.trained import source_of
from distill.core.errors import DistillError
from distill.core.sessions import load
from distill.exporters.onnx import flush_subnormals
from distill.metrics import complexity
from distill.models import build
from distill.models.checkpoint import recipe_of
from distill.models.teachers.onnx_teacher import OnnxTeacher
from distill.speed.graphs import at_size, graph_of, subnormals

Role = Literal["teacher", "student", "file", "file, unflushed"]


@dataclass(frozen=True)
class Contender:
    """`at` gives its graph for pictures of one side; where there is none, `network` is timed.

    The file had so many `subnormals` and, these among them, weights below 1e-20; `flushed` counts
    those that `at` sets to zero: all of them, or none in "file, unflushed".
    """

    name: str
    role: Role
    at: Callable[[int], onnx.ModelProto | None]
    bytes: int | None
    subnormals: int = 0
    flushed: int = 0
    network: nn.Module | None = None


@dataclass
class Candidates:
    """Contenders in the order of the tables, and a line for each that could not be had."""

    all: list[Contender] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def gather(settings: Benchmark) -> Candidates:
    """Teacher, student and files. Raises DistillError where there is no student to compare with."""
    found, checkpoint = Candidates(), _checkpoint(settings)
    if settings.with_teacher and (made := teacher(settings, checkpoint)):
        found.all.append(made)
    found.all.append(student(settings, checkpoint))
    for each in settings.inputs:
        try:
            found.all += list(of_file(Path(each).expanduser(), "file"))
        except DistillError as error:
            found.skipped.append(str(error))
            print(f"skipped: {error}", file=sys.stderr)
    found.all = _named_apart(found.all)
    return found


def _checkpoint(settings: Benchmark) -> Path | None:
    """That of run=NAME or model=FILE.ckpt; None for other files and the shipped student."""
    if settings.model is not None and settings.run is not None:
        raise DistillError(f"model={settings.model} and run={settings.run}: name one student only")
    if settings.run is not None:
        from distill.runs import run_folder

        return run_folder.named(settings.run, settings.runs).checkpoint("best")
    path = Path(settings.model or "").expanduser()
    return path if path.suffix.lower() == ".ckpt" else None


def teacher(settings: Benchmark, checkpoint: Path | None) -> Contender | None:
    """A trained run's own teacher, else the style's, where it can be had; else says so."""
    style, node = settings.style, settings.teacher
    if checkpoint:
        from distill.models.checkpoint import load_network  # Lightning, which files do without

        trained = load_network(checkpoint)[1]
        if (recipe := recipe_of(trained)) != "distill":
            print(f"no teacher: {checkpoint}: recipe={recipe} learns from pictures alone")
            return None
        own = source_of(trained)
        node, style = own.teacher, replace(own.style, weights=style.weights or own.style.weights)
    try:
        made, name = build.teacher_at_hand(style, node), f"teacher {style.name}"
    except DistillError as error:
        if not checkpoint:
            raise
        print(f"no teacher: {error}")  # a run outlives what it was taught by
        return None
    if made is None:
        print(
            f"no teacher: {style.file} of style={style.name} is not at hand; put it into a folder "
            "named by DISTILL_WEIGHTS, or pass style.weights=FILE"
        )
        return None
    if isinstance(made, OnnxTeacher):
        return replace(next(of_file(made.path, "teacher")), name=name)
    size = 4 * complexity.parameters(made)
    return Contender(name, "teacher", lambda side: graph_of(made, side), size or None, network=made)


def student(settings: Benchmark, checkpoint: Path | None) -> Contender:
    """model=FILE, run=NAME, or the shipped one of the style; subnormal weights set to zero."""
    if checkpoint:
        from distill.exporters.subject import student_graph

        model = student_graph(checkpoint)
        name = settings.run or checkpoint.stem
        return Contender(name, "student", partial(at_size, model), model.ByteSize())
    if settings.model is not None:
        return list(of_file(Path(settings.model).expanduser(), "student"))[-1]
    if settings.style.name not in zoo.shipped():
        raise DistillError(
            f"style={settings.style.name}: no student of it comes with the package; name one: "
            f"model=FILE or run=NAME, or style={', '.join(zoo.shipped())}"
        )
    shipped = next(of_file(zoo.find(settings.style.name), "student"))
    return replace(shipped, name=f"student {settings.style.name}")


def of_file(path: Path, role: Role) -> Iterator[Contender]:
    """An ONNX file, its subnormal weights set to zero; before that as it is, where it has any.

    Raises DistillError for a file that cannot be read.
    """
    model = load(path)
    if not model.graph.node:
        raise DistillError(f"{path}: not an ONNX file, or one without a network")
    size = model.ByteSize()  # weights that lie in a second file are in it too
    try:
        tiny = subnormals(model)
    except (TypeError, ValueError):
        raise DistillError(
            f"{path}: damaged: a weight has more or fewer bytes than its shape"
        ) from None
    if not tiny:
        yield Contender(path.stem, role, partial(at_size, model), size)
        return
    flushed = deepcopy(model)
    count = flush_subnormals(flushed)
    print(
        f"warning: {path.name}: {tiny:,} subnormal weights, which make it slow on many "
        f"processors; compared with the {count:,} below 1e-20 set to zero"
    )
    if role == "file":
        name, as_it_is = f"{path.stem}, as it is", partial(at_size, model)
        yield Contender(name, "file, unflushed", as_it_is, size, tiny)
    yield Contender(f"{path.stem}, flushed", role, partial(at_size, flushed), size, tiny, count)


def _named_apart(found: list[Contender]) -> list[Contender]:
    """Two files of one name become NAME and NAME (2)."""
    apart: dict[str, Contender] = {}
    for each in found:
        name, number = each.name, 1
        while name in apart:  # a file may be called NAME (2)
            number += 1
            name = f"{each.name} ({number})"
        apart[name] = replace(each, name=name)
    return list(apart.values())
