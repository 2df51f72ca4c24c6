"""recipe=distill step by step: from checked settings to a trained student."""

from __future__ import annotations

import os
import shutil
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pytorch_lightning import Callback

from distill.config.settings import PhotoSource, Train
from distill.core import nodes
from distill.core.errors import DistillError
from distill.data import sources
from distill.data.sources import check_labelling, has_photos, needs_labels
from distill.losses.criterion import Criterion
from distill.losses.gka import MIN_BATCH
from distill.models import build
from distill.models.build import build_student, load_teacher
from distill.models.checkpoint import load_student
from distill.models.students.student import Student
from distill.models.teachers.teacher import Teacher
from distill.training.callbacks.ema import StudentEMA
from distill.training.callbacks.health import Health
from distill.training.distillation import DistillModule
from distill.training.schedules import DEFAULT_RATE, make_optimizer, make_schedule

if TYPE_CHECKING:
    from distill.runs.run_folder import Run


def needed_teacher(settings: Train) -> Teacher | None:
    """The style's teacher; None where pairs of one's own and the loss need none."""
    if sources.needs_labels(settings) or settings.loss.weights.get("gka", 0) > 0:
        return build.load_teacher(settings.style, settings.teacher)
    return None


def new_student(settings: Train) -> Student:
    """The student as its training begins: with its encoder's weights, or as `init` has it."""
    if settings.init is None:
        return build_student(settings.encoder, settings.decoder.build, settings.channels)
    trained, _ = load_student(Path(settings.init).expanduser())
    unread = settings.encoder | {"weights": "none"}  # all of them come from `init`
    made = build_student(unread, settings.decoder.build, settings.channels)
    try:
        made.load_state_dict(trained.state_dict())
    except RuntimeError as error:
        raise DistillError(
            f"init={settings.init}: another network than this run's; set encoder=, decoder= and "
            "channels= as they were, or leave init out"
        ) from error
    return made


def student_module(settings: Train, of: Teacher | None) -> DistillModule:
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


def check(settings: Train) -> None:
    """What is wrong with photos, pairs and channels, before anything is computed."""
    if not needs_labels(settings):
        return
    root = settings.data.root
    if root and not has_photos(settings):
        raise DistillError(
            f"data.root={root}: no such folder, and no photos={settings.photos} to make it from"
        )
    check_labelling(settings)
    if settings.channels == 4 and not _draws_rgba(settings):
        raise DistillError(
            "channels=4: the teacher draws RGB; name RGBA drawings of your own with data.root=DIR"
        )


def _draws_rgba(settings: PhotoSource) -> bool:
    """Of all teachers only a trained run may draw transparency, and it is at hand."""
    of_run = settings.teacher["_target_"].startswith("distill.models.teachers.trained_run.")
    return of_run and load_teacher(settings.style, settings.teacher).transparent


def distil(settings: Train, run: Run, first: bool) -> None:
    """Train a student, or go on; `first` of several processes speaks and writes."""
    from dataclasses import asdict

    import pytorch_lightning as pl

    from distill.data import loaders
    from distill.runs.run_folder import over, step_of
    from distill.training import tuning
    from distill.training.trainer import fit, make_trainer

    # All that can be wrong is found out before the teacher labels, which may take hours.
    plain = asdict(settings)
    checkpoint = run.resumable(plain, settings.resume)
    if checkpoint and (end := over(checkpoint, settings.trainer.max_steps)):
        print(f"{run.folder}: {end}")
        return
    check(settings)
    teacher = needed_teacher(settings)
    pl.seed_everything(settings.seed, verbose=False)
    module = student_module(settings, teacher)
    trainer = make_trainer(settings, run, watchers(settings))
    data = loaders.data(settings, teacher)

    if not first:  # the first has done what follows
        tuning.take_over(module, run)
    else:
        run.start(plain, settings.resume)
        if checkpoint:
            print(f"{run.folder}: resumes at step {step_of(checkpoint)} (resume=false starts anew)")
        else:
            print(f"{run.folder}: a new run of {settings.trainer.max_steps} steps")
            tuning.measure(module, data, settings, run, trainer.strategy.root_device)

    fit(trainer, module, data, run, checkpoint)
