"""What distill.benchmark times: a teacher, a student, any other files, ONNX at any size."""

import io
import sys
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import nn

from distill.config.groups import nodes_of
from distill.config.settings.base import TeacherNode
from distill.config.settings.networks import StyleSettings
from distill.config.settings.training import PhotoSource, source_of
from distill.core import onnx_files, sessions
from distill.core.errors import DistillError
from distill.core.files import home_path
from distill.core.nodes import class_of
from distill.core.process import silent
from distill.export.format import Format
from distill.export.onnx import OnnxExporter
from distill.export.subject import inference_graph
from distill.metrics import complexity
from distill.models import build, zoo
from distill.models.checkpoint import load_network
from distill.models.network_file import is_network_file
from distill.models.students.global_statistics import THUMBNAIL
from distill.models.teachers.onnx_teacher import OnnxTeacher
from distill.models.teachers.teacher import Teacher
from distill.runs import run_folder
from distill_benchmark.settings import Benchmark

Role = Literal["teacher", "student", "file", "file, unflushed"]


@dataclass(frozen=True)
class TimedModel:
    """`at` gives its graph for pictures of one side; where there is none, `network` is timed.

    `file` is one of another format than ONNX, and its folder.

    `bytes` is the file's size, or that of the weights in float32; `subnormals` how many of the
    file's weights are subnormal, `flushed` how many below 1e-20 `at` sets to zero.
    """

    name: str
    role: Role
    at: Callable[[int], onnx.ModelProto | None]
    bytes: int | None
    subnormals: int = 0
    flushed: int = 0
    network: nn.Module | None = None
    file: tuple[Format, Path] | None = None

    def file_call(self, size: int) -> Callable[[], object]:
        """One run of its file, as an export makes it without settings, on a picture of one side.

        Raises DistillError where no runtime of it is here.
        """
        assert self.file
        format_, folder = self.file
        run = format_.open(folder)
        if run is None:
            raise DistillError("no runtime here for this file")
        photo = torch.rand(1, 3, size, size, generator=torch.Generator().manual_seed(0))
        return partial(run, format_.forms(OnnxExporter(size=size))[0].encode(photo.numpy()))


def find_models(settings: Benchmark) -> tuple[list[TimedModel], list[str]]:
    """Teacher, student and files in the order of the tables, and a line for each unreadable file.

    Two files of one name become NAME and NAME (2). Raises DistillError where there is no student
    to compare with.
    """
    checkpoint = None  # or an exported safetensors file
    if settings.run is not None:
        if settings.model is not None:
            both = f"model={settings.model} and run={settings.run}"
            raise DistillError(f"{both}: name one student only")
        checkpoint = run_folder.run_named(settings.run, settings.runs).checkpoint("best")
    elif settings.model is not None:
        path = home_path(settings.model)
        if path.suffix.lower() == ".ckpt" or is_network_file(path):
            checkpoint = path
    heavy = teacher(settings.style, settings.teacher, checkpoint) if settings.with_teacher else None
    models, skipped = [heavy] if heavy else [], []
    models.append(student(settings, checkpoint))
    for each in settings.inputs:
        try:
            models += list(models_of_file(home_path(each), "file"))
        except DistillError as error:
            skipped.append(str(error))
            print(f"skipped: {error}", file=sys.stderr)
    by_name: dict[str, TimedModel] = {}
    for model in models:
        name, number = model.name, 1
        while name in by_name:  # a file may be called NAME (2)
            number += 1
            name = f"{model.name} ({number})"
        by_name[name] = replace(model, name=name)
    return list(by_name.values()), skipped


def teacher(style: StyleSettings, node: TeacherNode, checkpoint: Path | None) -> TimedModel | None:
    """A trained run's own teacher, else the style's, where it can be had; else says so."""
    if checkpoint and not is_network_file(checkpoint):
        trained = load_network(checkpoint)[1]
        if not isinstance(trained, PhotoSource):
            print(f"no teacher: {checkpoint}: recipe={trained.recipe} learns from pictures alone")
            return None
        source = source_of(trained)
        if source.teacher is None:
            print(f"no teacher: {checkpoint}: learnt from the pairs in {source.data.root}")
            return None
        node = source.teacher
        style = replace(source.style, weights=style.weights or source.style.weights)
    try:
        network, name = build.available_teacher(style, node), f"teacher {style.name}"
    except DistillError as error:
        if not checkpoint:
            raise
        print(f"no teacher: {error}")  # a run outlives what it was taught by
        return None
    if network is None:
        print(
            f"no teacher: {style.file} of style={style.name} is not available; put it into a "
            "folder named by DISTILL_WEIGHTS, or pass style.weights=FILE"
        )
        return None
    if not network.timed:
        print(f"no teacher: {style.name} takes too long to be timed")
        return None
    if isinstance(network, OnnxTeacher):
        return replace(next(models_of_file(network.path, "teacher")), name=name)
    size = 4 * complexity.parameters(network)

    def graph(side: int) -> onnx.ModelProto | None:
        return traced_graph(network, side) if network.traceable else None

    return TimedModel(name, "teacher", graph, size or None, network=network)


def student(settings: Benchmark, checkpoint: Path | None) -> TimedModel:
    """model=FILE, run=NAME, or the shipped one of the style; subnormal weights set to zero."""
    if checkpoint:
        model = inference_graph(checkpoint)
        name = settings.run or checkpoint.stem
        return TimedModel(name, "student", partial(at_size, model), model.ByteSize())
    if settings.model is not None:
        return list(models_of_file(home_path(settings.model), "student"))[-1]
    if settings.style.name not in zoo.shipped():
        raise DistillError(
            f"style={settings.style.name}: no student of it comes with the package; name one: "
            f"model=FILE or run=NAME, or style={', '.join(zoo.shipped())}"
        )
    shipped = next(models_of_file(zoo.find(settings.style.name), "student"))
    # One that takes every size has a file beside it that computes less at 256².
    fixed = next(models_of_file(zoo.static(settings.style.name), "student"))
    return replace(
        shipped,
        name=f"student {settings.style.name}",
        at=lambda side: (fixed if side == THUMBNAIL else shipped).at(side),
    )


def models_of_file(path: Path, role: Role) -> Iterator[TimedModel]:
    """An ONNX file, its subnormal weights set to zero; before that as it is, where it has any.

    Or a file of another format of distill.export. Raises DistillError for one that cannot be read.
    """
    if path.exists() and path.suffix != ".onnx":
        for key, node in nodes_of("formats").items():
            kind = class_of(f"formats.{key}", node)
            ending = kind.files_of("")[0]
            if path.name.endswith(ending):
                format_ = kind(path.name.removesuffix(ending))
                paths = [path.with_name(name) for name in format_.files]
                size = sum(each.stat().st_size for each in paths if each.is_file())
                yield TimedModel(path.name, role, lambda _: None, size, file=(format_, path.parent))
                return
    model = onnx_files.load_model(path)
    size = model.ByteSize()  # weights that lie in a second file are in it too
    try:
        tiny = onnx_files.count_subnormals(map(numpy_helper.to_array, model.graph.initializer))
    except (TypeError, ValueError):
        raise DistillError(
            f"{path}: damaged: a weight has more or fewer bytes than its shape"
        ) from None
    if not tiny:
        yield TimedModel(path.stem, role, partial(at_size, model), size)
        return
    flushed = deepcopy(model)
    count = onnx_files.flush_subnormals(flushed)
    print(
        f"warning: {path.name}: {tiny:,} subnormal weights, which make it slow on many "
        f"processors; compared with the {count:,} below 1e-20 set to zero"
    )
    if role == "file":
        name, as_it_is = f"{path.stem}, as it is", partial(at_size, model)
        yield TimedModel(name, "file, unflushed", as_it_is, size, tiny)
    yield TimedModel(f"{path.stem}, flushed", role, partial(at_size, flushed), size, tiny, count)


TEACHER_OPSET = 17
SAME = 1e-3  # largest difference of a teacher's graph from PyTorch, of values in [0, 1]
PICTURE = (1, 3, 4)  # channels by which a picture is known among an input's dimensions


def traced_graph(network: Teacher, size: int) -> onnx.ModelProto | None:
    """The teacher's own graph, if it can be traced and its output is that of PyTorch; else None."""
    buffer = io.BytesIO()
    photo = torch.rand(1, 3, size, size, generator=torch.Generator().manual_seed(0))
    try:
        with warnings.catch_warnings(), torch.inference_mode(), silent():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                network, (photo,), buffer,  # type: ignore[arg-type]  # see OnnxExporter
                input_names=["photo"], output_names=["stylized"], opset_version=TEACHER_OPSET,
                dynamo=False,
            )  # fmt: skip
            expected = network(photo).numpy()
        model = onnx.load_from_string(buffer.getvalue())
        session = sessions.open_session(model, torch.get_num_threads())
        output = np.asarray(session.run(None, {"photo": photo.numpy()})[0])
    except Exception:  # whatever a tracer raises at what it cannot trace
        return None
    return model if np.abs(output - expected).max() <= SAME else None


def at_size(model: onnx.ModelProto, size: int) -> onnx.ModelProto:
    """A copy for one picture of size×size: batch 1, its height and width set or changed.

    Inputs that are no pictures keep their dimensions; what is not fixed there becomes 1.
    """
    fixed = deepcopy(model)
    changed = False
    for value in onnx_files.model_inputs(fixed):
        dims = value.type.tensor_type.shape.dim
        before = [dim.dim_value for dim in dims]
        sides: tuple[int, ...] = ()
        if len(dims) == 4 and value.name != onnx_files.SUMMARY:
            sides = (2, 3) if before[1] in PICTURE else (1, 2) if before[3] in PICTURE else ()
        for index, dim in enumerate(dims):
            dim.dim_value = size if index in sides else max(before[index], 1)
        changed |= before != [dim.dim_value for dim in dims]
    if changed:  # what was inferred from the old size
        del fixed.graph.value_info[:]
        for output in fixed.graph.output:
            output.type.tensor_type.ClearField("shape")
    return fixed
