"""From checked settings to objects: teacher, student, criterion."""

from __future__ import annotations

import os
import shutil
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import onnx
import torch
from pytorch_lightning import Callback
from torch import nn

from distill import nodes, sources
from distill.callbacks.ema import StudentEMA
from distill.callbacks.health import Health
from distill.checks import fit
from distill.errors import DistillError
from distill.losses.combined import Criterion
from distill.losses.gka import MIN_BATCH
from distill.module import DistillModule
from distill.settings import Budget, Generator, Paired, Train, Unpaired
from distill.students.student import Student
from distill.teachers.base import Teacher
from distill.teachers.checkpoint import Direction, read, recipe_of

DEFAULT_RATE = 1e-3  # where lr=auto finds none


def teacher(settings: Train) -> Teacher | None:
    """The style's teacher; None where pairs of one's own and the loss need none."""
    if sources.needs_labels(settings) or settings.loss.weights.get("gka", 0) > 0:
        return sources.teacher(settings.style, settings.teacher)
    return None


def student(encoder: dict[str, Any], decoder: dict[str, Any], channels: int) -> Student:
    """Encoder and decoder from their nodes."""
    built = nodes.build(encoder)
    out = nodes.build(
        decoder, channels=built.channels, strides=built.strides, out_channels=channels
    )
    return Student(built, out)


def new_student(settings: Train) -> Student:
    """The student as its training begins: with its encoder's weights, or as `init` has it."""
    if settings.init is None:
        return student(settings.encoder, settings.decoder.build, settings.channels)
    trained, _ = load_student(Path(settings.init).expanduser())
    unread = settings.encoder | {"weights": "none"}  # all of them come from `init`
    made = student(unread, settings.decoder.build, settings.channels)
    try:
        made.load_state_dict(trained.state_dict())
    except RuntimeError as error:
        raise DistillError(
            f"init={settings.init}: another network than this run's; set encoder=, decoder= and "
            "channels= as they were, or leave init out"
        ) from error
    return made


def lineage(trained: dict[str, Any]) -> list[dict[str, Any]]:
    """The settings of a trained run and, after them, of those whose students it started from.

    Raises DistillError where such a student is not there any more.
    """
    runs = [trained]
    while before := runs[-1].get("init"):
        runs.append(load_student(Path(before).expanduser())[1])
    return runs


def load_student(checkpoint: Path) -> tuple[Student, dict[str, Any]]:
    """A trained student (averaged weights where the run kept them) and its run's settings.

    The checkpoint is read as tensors and plain values, and may only name classes of
    distill.students and distill.teachers. Raises DistillError for any other file, and for a run of
    another recipe.
    """
    network, settings = load_network(checkpoint)
    if (recipe := recipe_of(settings)) != "distill":
        raise DistillError(
            f"{checkpoint}: a run of recipe={recipe}, a student is wanted: one of recipe=distill"
        )
    assert isinstance(network, Student)
    return network, settings


def load_network(
    checkpoint: Path, direction: Direction = "AtoB"
) -> tuple[nn.Module, dict[str, Any]]:
    """What a run of any recipe draws with, in evaluation mode, and the run's settings.

    `direction` chooses one of CycleGAN's two generators. Raises DistillError as `read` does.
    """
    network, settings = read(checkpoint, direction)
    try:
        if recipe_of(settings) != "distill":
            _check_generator(settings)
        else:
            # Before anything imports what it names: the teacher is built later, from these.
            nodes.check_part(settings["teacher"], "distill.teachers", Teacher)
            sources.source_of(settings)
    except DistillError as error:
        raise DistillError(f"{checkpoint}: {error}") from error
    except Exception as error:  # whatever a file from elsewhere may hold
        reason = f"damaged, or not a checkpoint of distill.train ({type(error).__name__})"
        raise DistillError(f"{checkpoint}: {reason}") from error
    return network, settings


def _check_generator(settings: dict[str, Any]) -> None:
    """What the commands read of a generator's run is there; classes it names are not imported."""
    settings["run"]
    fit(settings["data"], Paired if recipe_of(settings) == "pix2pix" else Unpaired)
    fit(settings["generator"], Generator)
    fit(settings["budget"], Budget)


def student_graph(checkpoint: Path, direction: Direction = "AtoB") -> onnx.ModelProto:
    """What a run of any recipe draws with as an ONNX graph, unchecked, of the size it takes.

    A student's is of 256², a generator's of the pictures that it learnt on. `direction` chooses
    one of CycleGAN's two generators. Raises DistillError.
    """
    from distill.exporters.onnx import OnnxExporter
    from distill.students.fold import fold_batchnorm

    trained, settings = load_network(checkpoint, direction)
    exporter = OnnxExporter()
    if recipe_of(settings) != "distill":
        exporter = OnnxExporter(size=settings["data"]["crop_size"])
    return exporter.export(fold_batchnorm(trained))


def module(settings: Train, of: Teacher | None) -> DistillModule:
    """Student, criterion and how they are optimised."""
    gka = settings.loss.weights.get("gka", 0) > 0
    if gka and (of is None or not of.gives_activations):
        raise DistillError(
            "GKA needs the teacher's activations and this teacher only gives pictures; "
            "set loss.weights.gka=0"
        )
    if gka and settings.data.batch_size < MIN_BATCH:
        raise DistillError(
            f"data.batch_size={settings.data.batch_size}: GKA compares pictures within a batch and "
            f"needs at least {MIN_BATCH}; raise it or set loss.weights.gka=0"
        )
    # Fast before anything hooks its layers: it replaces some, and labelling would do it later.
    kept = of.fast() if of and (settings.data.kind == "photos" or gka) else None
    made = DistillModule(
        new_student(settings),
        criterion(settings),
        partial(make_optimizer, settings.optimizer),
        partial(make_schedule, settings.schedule),
        DEFAULT_RATE if settings.lr == "auto" else settings.lr,
        kept,
    )
    try:
        made.make_optimizer(made.student.parameters(), made.lr)  # shows a bad value at once
    except (ValueError, TypeError) as error:
        raise DistillError(f"optimizer: {error}") from error
    if settings.trainer.compile:
        _need_compiler(settings.trainer.accelerator)
        made.compile_training()
    return made


def _need_compiler(accelerator: str) -> None:
    if not any(map(shutil.which, (os.environ.get("CXX", "g++"), "clang++"))):
        raise DistillError(
            "trainer.compile=true: needs a C++ compiler and there is none; install g++, or leave it"
        )
    if accelerator == "gpu" and find_spec("triton") is None:
        raise DistillError(
            "trainer.compile=true: needs Triton on a GPU and there is none; pip install triton, "
            "or leave it"
        )


def watchers(settings: Train) -> list[Callback]:
    """What watches a student train: the average of its weights, and whether they live."""
    return [*([StudentEMA(settings.ema)] if settings.ema else []), Health()]


def criterion(settings: Train) -> Criterion:
    """The terms whose weight is above 0."""
    loss = settings.loss
    if unknown := sorted(loss.weights.keys() - loss.terms.keys()):
        raise DistillError(
            f"loss.weights.{unknown[0]}: no such term; there are {', '.join(sorted(loss.terms))}"
        )
    used = {name: nodes.build(loss.terms[name]) for name, w in loss.weights.items() if w > 0}
    return Criterion(used, loss.weights)


def make_optimizer(node: dict[str, Any], parameters: Any, lr: float) -> torch.optim.Optimizer:
    """The optimiser of a node over these parameters."""
    return nodes.build(node, params=parameters, lr=lr)


def make_schedule(
    node: dict[str, Any], optimizer: torch.optim.Optimizer, total_steps: int, val_every: int
) -> Any:
    """The schedule of a node, as Lightning takes it; None for a rate that stays."""
    return nodes.build(node, optimizer=optimizer, total_steps=total_steps, val_every=val_every)
