"""What distill.benchmark times: a teacher, a student, and any other ONNX files, at any size."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn

from distill import sources, zoo
from distill.drawing.painter import load
from distill.errors import DistillError
from distill.exporters.onnx import flush_subnormals
from distill.metrics import complexity, sessions
from distill.settings import Benchmark, RunChoice
from distill.teachers.base import Teacher
from distill.teachers.onnx import OnnxTeacher
from distill.weights import cache_folder, supplied

Role = Literal["teacher", "student", "file", "file, unflushed"]
TEACHER_OPSET = 17
SAME = 1e-3  # largest difference of a teacher's graph from PyTorch, of values in [0, 1]
PICTURE = (1, 3, 4)  # channels by which a picture is known among an input's dimensions


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
class Found:
    """Contenders in the order of the tables, and a line for each that could not be had."""

    all: list[Contender] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def gather(settings: Benchmark) -> Found:
    """Teacher, student and files. Raises DistillError where there is no student to compare with."""
    found = Found()
    if settings.with_teacher and (made := teacher(settings)):
        found.all.append(made)
    found.all.append(student(settings))
    for each in settings.inputs:
        try:
            found.all += list(of_file(Path(each).expanduser(), "file"))
        except DistillError as error:
            found.skipped.append(str(error))
            print(f"skipped: {error}", file=sys.stderr)
    found.all = _named_apart(found.all)
    return found


def teacher(settings: Benchmark) -> Contender | None:
    """The style's teacher where its weights are at hand; else says so."""
    style = settings.style
    at_hand = style.weights or style.file is None or supplied(style.file)
    if not (at_hand or (cache_folder() / str(style.file)).is_file()):
        print(
            f"no teacher: {style.file} of style={style.name} is not at hand; put it into a folder "
            "named by DISTILL_WEIGHTS, or pass style.weights=FILE"
        )
        return None
    made, name = sources.teacher(style, settings.teacher), f"teacher {style.name}"
    if isinstance(made, OnnxTeacher):
        return replace(next(of_file(made.path, "teacher")), name=name)
    size = 4 * complexity.parameters(made)
    return Contender(name, "teacher", lambda side: graph_of(made, side), size or None, network=made)


def graph_of(network: Teacher, size: int) -> onnx.ModelProto | None:
    """The teacher's own graph, if it can be traced and draws the same as PyTorch; else None."""
    buffer = io.BytesIO()
    photo = torch.rand(1, 3, size, size, generator=torch.Generator().manual_seed(0))
    try:
        with warnings.catch_warnings(), torch.inference_mode(), _silent():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                network, (photo,), buffer,  # type: ignore[arg-type]  # see OnnxExporter
                input_names=["photo"], output_names=["stylized"], opset_version=TEACHER_OPSET,
                dynamo=False,
            )  # fmt: skip
            expected = network(photo).numpy()
        model = onnx.load_from_string(buffer.getvalue())
        session = sessions.start(model, torch.get_num_threads())
        drawn = np.asarray(session.run(None, {"photo": photo.numpy()})[0])
    except Exception:  # whatever a tracer raises at what it cannot trace
        return None
    return model if np.abs(drawn - expected).max() <= SAME else None


@contextmanager
def _silent() -> Iterator[None]:
    """Nothing on the terminal: the tracer prints the whole graph where it fails, from C++."""
    sys.stdout.flush()
    kept = [os.dup(standard) for standard in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for standard in (1, 2):
            os.dup2(nowhere, standard)
        yield
    finally:
        for standard, own in zip((1, 2), kept, strict=True):
            os.dup2(own, standard)
        for each in (nowhere, *kept):
            os.close(each)


def student(settings: Benchmark) -> Contender:
    """model=FILE, run=NAME, or the shipped one of the style; subnormal weights set to zero."""
    if settings.model is not None and settings.run is not None:
        raise DistillError(f"model={settings.model} and run={settings.run}: name one student only")
    if settings.run is not None:
        from distill.runs import find_run

        choice = RunChoice(run=settings.run, runs=settings.runs, checkpoint="best", output=None)
        return _of_checkpoint(find_run(choice).checkpoint("best"), settings.run)
    if settings.model is not None:
        path = Path(settings.model).expanduser()
        if path.suffix.lower() == ".ckpt":
            return _of_checkpoint(path, path.stem)
        return list(of_file(path, "student"))[-1]
    if settings.style.name not in zoo.shipped():
        raise DistillError(
            f"style={settings.style.name}: no student of it comes with the package; name one: "
            f"model=FILE or run=NAME, or style={', '.join(zoo.shipped())}"
        )
    shipped = next(of_file(zoo.find(settings.style.name), "student"))
    return replace(shipped, name=f"student {settings.style.name}")


def _of_checkpoint(path: Path, name: str) -> Contender:
    from distill.build import student_graph

    model = student_graph(path)
    return Contender(name, "student", partial(at_size, model), model.ByteSize())


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


def subnormals(model: onnx.ModelProto) -> int:
    """How many float32 weights are subnormal: not zero, and below 1.18e-38."""
    arrays = (numpy_helper.to_array(t) for t in model.graph.initializer)
    floats = [array for array in arrays if array.dtype == np.float32]
    return sum(int(((a != 0) & (np.abs(a) < np.finfo(np.float32).tiny)).sum()) for a in floats)


def at_size(model: onnx.ModelProto, size: int) -> onnx.ModelProto:
    """A copy for one picture of size×size: batch 1, its height and width set or changed.

    Inputs that are no pictures keep their dimensions; what is not fixed there becomes 1.
    """
    fixed = deepcopy(model)
    weights = {tensor.name for tensor in fixed.graph.initializer}
    changed = False
    for value in fixed.graph.input:
        if value.name not in weights:
            changed |= _fix(value.type.tensor_type.shape.dim, size)
    if changed:  # what was inferred from the old size
        del fixed.graph.value_info[:]
        for output in fixed.graph.output:
            output.type.tensor_type.ClearField("shape")
    return fixed


def _fix(dims: list[onnx.TensorShapeProto.Dimension], size: int) -> bool:
    before = [dim.dim_value for dim in dims]
    sides: tuple[int, ...] = ()
    if len(dims) == 4:
        sides = (2, 3) if before[1] in PICTURE else (1, 2) if before[3] in PICTURE else ()
    for index, dim in enumerate(dims):
        dim.dim_value = size if index in sides else max(before[index], 1)
    return before != [dim.dim_value for dim in dims]


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
