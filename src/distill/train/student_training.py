"""recipe=distill, step by step: from checked settings to a trained student."""

import os
import shutil
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec

import pytorch_lightning as pl
import torch
from torch import nn

from distill.config.settings.training import Loss, Train
from distill.core import nodes
from distill.core.errors import DistillError, counted
from distill.core.files import home_path, near_name
from distill.core.images import from_pixels
from distill.data import photo_folders
from distill.data.datamodule import DistillData, LoaderData, TrainingData
from distill.data.kinds.registry import data_source
from distill.losses.criterion import make_criterion
from distill.losses.term import Reads
from distill.models.build import channels_of, load_teacher
from distill.models.students.heads import Head
from distill.models.teachers.teacher import Teacher
from distill.prepare import labelling
from distill.runs.run_folder import Run
from distill.train import tuning
from distill.train.callbacks.student import Health, LateTerms, StudentEMA
from distill.train.distillation import DistillModule
from distill.train.ending import tell_finished
from distill.train.first_weights import check_name, new_student
from distill.train.schedules import DEFAULT_RATE, make_optimizer, make_schedule
from distill.train.trainer import fit, make_trainer


def train(
    settings: Train,
    run: Run,
    first: bool,
    data: TrainingData | None = None,
    kind: type[DistillModule] = DistillModule,
) -> None:
    """Train a student, or resume; only the `first` of several processes prints and writes.

    `data` are pictures of one's own, in the place of those that the settings name. The student
    trains in a module of this `kind`.
    """
    # All that can be wrong is found out before the teacher labels, which may take hours.
    check_name(settings.init)  # a run that is there would only say that its settings are others
    checkpoint = run.resumable(settings)
    if tell_finished(run, checkpoint, settings.trainer, "student"):
        return
    check(settings)
    if isinstance(data, LoaderData):
        data.check_first()

    teacher = needed_teacher(settings)
    pl.seed_everything(settings.seed, verbose=False)
    module = student_module(settings, teacher, kind)
    callbacks: list[pl.Callback] = [StudentEMA(settings.ema)] if settings.ema else []
    if any(settings.loss.start.values()):
        callbacks.append(LateTerms())
    trainer = make_trainer(settings, run, [*callbacks, Health()], clip=settings.trainer.clip)
    data = data or labelling.label_and_load(settings, teacher)
    begin_at_targets(module, data)

    if first:
        run.start(settings, checkpoint, counted(settings.trainer.max_steps, "step"))
        if not checkpoint:
            tuning.measure(module, data, settings, run, trainer.strategy.root_device)
    else:
        tuning.load_measured(module, run)
    fit(trainer, module, data, run, checkpoint, "student")  # says what is next


def parts(
    settings: Train, kind: type[DistillModule] = DistillModule
) -> tuple[DistillModule, DistillData]:
    """What Lightning trains, for whoever has a trainer already; labels what is missing."""
    check(settings)
    teacher = needed_teacher(settings)
    pl.seed_everything(settings.seed, verbose=False)
    module = student_module(settings, teacher, kind)
    return module, labelling.label_and_load(settings, teacher)


def check(settings: Train) -> None:
    """Raises DistillError, before anything is computed, for photos, pairs or channels of no use."""
    source, root, style = data_source(settings), settings.data.root, settings.style.name
    pairs = (root and source.own_pairs) or not source.on_disk
    if settings.teacher is None and not pairs:
        raise DistillError(
            f"style={style}: is of pairs of your own; name their folder with "
            "data.root=DIR, or a style with a teacher"
        )
    if settings.batchnorm != "learnt" and settings.init is None:
        raise DistillError(
            f"batchnorm={settings.batchnorm}: a student that was never trained has no averages "
            "worth keeping; start from one that was, such as init=zoo:hayao, or leave it out"
        )
    if settings.loss.masks and "mask" not in settings.loss.weighed:
        raise DistillError(
            f"loss.masks={settings.loss.masks}: counts for nothing; weigh its pixels by "
            "loss.region.mask=3, or leave it out"
        )
    source.check()
    if not source.needs_labels:
        source.check_labelled_sizes()
        for key, file in photo_folders.drop_lists(settings).items():
            if file:
                raise DistillError(
                    f"{key}={file}: nothing is labelled here, the pairs are taken as they are; "
                    f"distill curate data.root={root} {key}={file} or, of "
                    f"a set of distill.prepare, that command with {key}={file} changes them"
                )
        facts = (source.made_of(str(root)) if root else None) or {}
        if settings.teacher and facts.get("style", style) != style:
            print(f"data.root={root}: targets of style={facts['style']} are learnt, not of {style}")
        return
    if root and not photo_folders.has_photos(settings):
        there = home_path(root)
        lacking = f"nothing for data={settings.data.kind}" if there.is_dir() else "no such folder"
        near = "" if there.is_dir() else near_name(there)
        other = near or f", and no photos={settings.photos} to make it from"
        raise DistillError(f"data.root={root}: {lacking}{other}")
    labelling.check_labelling(settings)
    if settings.channels != 3 and settings.teacher is not None:
        # Of all teachers only a trained run, a file and the user's own may give others than RGB.
        others = ("trained_run.", "onnx_teacher.", "python_callable.")
        ours = tuple(f"distill.models.teachers.{each}" for each in others)
        may = settings.teacher["_target_"].startswith(ours) or nodes.is_plugin(settings.teacher)
        taught = channels_of(load_teacher(settings.style, settings.teacher)) if may else 3
        if taught != settings.channels:
            kind = {1: "grey", 3: "RGB", 4: "RGBA"}
            raise DistillError(
                f"channels={settings.channels}: the teacher's output is {kind[taught]}; set "
                f"channels={taught}, or name pairs of your own with data.root=DIR whose targets "
                f"are {kind[settings.channels]}"
            )


def needed_teacher(settings: Train) -> Teacher | None:
    """The style's teacher; None where pairs of one's own and the loss need none."""
    activations = _reads_activations(settings.loss)
    if settings.teacher is None and activations:
        raise DistillError(
            "GKA needs the teacher's activations, and pairs of your own have no teacher; set "
            "loss.weights.gka=0"
        )
    source = data_source(settings)
    live = source.live and settings.teacher is not None  # of a loader, for photos alone
    if not (live or source.needs_labels or activations):
        return None
    teacher = load_teacher(settings.style, settings.teacher)
    if activations and not teacher.gives_activations:
        raise DistillError(
            "GKA needs the teacher's activations and this teacher only gives pictures; "
            "set loss.weights.gka=0"
        )
    return teacher


def student_module(
    settings: Train, teacher: Teacher | None, kind: type[DistillModule] = DistillModule
) -> DistillModule:
    """Student, criterion and how they are optimised. Raises DistillError for what does not fit."""
    student = new_student(settings)
    if settings.trainable is not None:
        freeze_others(student, settings.trainable)
    criterion = make_criterion(settings.loss.terms, settings.loss.weights, settings.loss.start)
    if settings.data.batch_size < criterion.min_batch:
        raise DistillError(
            f"data.batch_size={settings.data.batch_size}: GKA compares pictures within a batch and "
            f"needs at least {criterion.min_batch}; raise it or set loss.weights.gka=0"
        )
    needed = _reads_activations(settings.loss) or data_source(settings).live
    module = kind(
        student,
        criterion,
        partial(make_optimizer, settings.optimizer),
        partial(make_schedule, settings.schedule),
        DEFAULT_RATE if settings.lr == "auto" else settings.lr,
        # Fast before its layers are hooked: that replaces some, and labelling would do it later.
        teacher.fast() if teacher and needed else None,
        settings.seed,
        keep_averages=settings.batchnorm != "learnt",
    )
    module.configure(settings)
    for name in criterion.terms:
        if nodes.is_plugin(settings.loss.terms[name]):
            module.try_term(name)
    optimizer = module.make_optimizer(student.parameters(), module.lr)  # shows a bad value at once
    module.make_schedule(optimizer, settings.trainer.max_steps, settings.trainer.val_every)
    if settings.trainer.compile:
        _need_compiler(settings.trainer.accelerator)
        module.compile_training()
    return module


def freeze_others(student: nn.Module, trainable: Sequence[str]) -> None:
    """Let only these parts learn, modules or parameters by name. Raises DistillError."""
    parameters = dict(student.named_parameters())
    parts = {".".join(name.split(".")[:depth]) for name in parameters for depth in range(1, 9)}
    for name in trainable:
        if name not in parts:
            known = sorted({part for part in parts if part.count(".") < 2})
            raise DistillError(
                "trainable: " + nodes.unknown_name(name, known, "part of the student")
            )
    for name, parameter in parameters.items():
        parameter.requires_grad_(any(f"{name}.".startswith(f"{part}.") for part in trainable))


def begin_at_targets(module: DistillModule, data: TrainingData) -> None:
    """Initialize the student's head, if it has one, from the first targets.

    Raises DistillError for targets that it cannot give.
    """
    head = module.student.head
    if not isinstance(head, Head):
        return
    targets = [batch["target"] for batch in data.first_batches(4) if "target" in batch]
    if targets:
        pictures = torch.cat(targets)
        pictures = from_pixels(pictures) if pictures.dtype == torch.uint8 else pictures
        head.begin_at(pictures)
        head.check_target(pictures[0])


def _reads_activations(loss: Loss) -> bool:
    """Whether a loss term in use reads activations, as its class states; builds none."""
    used = [term for name, term in loss.terms.items() if loss.weights.get(name, 0) > 0]
    stated = (getattr(nodes.class_of("loss.terms", term), "reads", None) for term in used)
    return Reads.ACTIVATIONS in stated


def _need_compiler(accelerator: str) -> None:
    if not any(map(shutil.which, (os.environ.get("CXX", "g++"), "clang++"))):
        raise DistillError(
            "trainer.compile=true: needs a C++ compiler and there is none; install g++, or leave "
            "it out"
        )
    if accelerator == "gpu" and find_spec("triton") is None:
        raise DistillError(
            "trainer.compile=true: needs Triton on a GPU and there is none; pip install triton, "
            "or leave it out"
        )
