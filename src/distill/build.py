"""From checked settings to objects: data, student, criterion, trainer."""

from __future__ import annotations

import logging
import warnings
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import LearningRateMonitor, ModelCheckpoint
from pytorch_lightning.loggers import TensorBoardLogger
from torch import nn

from distill import config, sources
from distill.callbacks.ema import StudentEMA
from distill.callbacks.health import Health
from distill.callbacks.previews import Previews
from distill.callbacks.progress import Progress
from distill.callbacks.provenance import Provenance
from distill.callbacks.table import MetricsTable
from distill.data.layouts import find_pairs
from distill.data.module import DistillData
from distill.data.photos import split
from distill.data.sets import PairSet, PhotoSet
from distill.errors import DistillError
from distill.losses.combined import Criterion
from distill.losses.gka import MIN_BATCH
from distill.module import DistillModule
from distill.runs import Run
from distill.settings import Train
from distill.students.student import Student
from distill.teachers.base import Teacher


def data(settings: Train, of: Teacher | None) -> DistillData:
    """Training and validation pictures; labels what is missing on the way."""
    kind = settings.data.kind
    train, val = _photo_sets(settings) if kind == "photos" else _pair_sets(settings, of)
    d = settings.data
    return DistillData(train, val, d.batch_size, d.workers, d.val_limit)


def teacher(settings: Train) -> Teacher | None:
    """The style's teacher; None where pairs of one's own and the loss need none."""
    if sources.needs_labels(settings) or settings.loss.weights.get("gka", 0) > 0:
        return sources.teacher(settings.style, settings.teacher)
    return None


def student(encoder: dict[str, Any], decoder: dict[str, Any], channels: int) -> Student:
    """Encoder and decoder from their nodes."""
    built = config.build(encoder)
    out = config.build(
        decoder, channels=built.channels, strides=built.strides, out_channels=channels
    )
    return Student(built, out)


def load_student(checkpoint: Path) -> tuple[Student, dict[str, Any]]:
    """A trained student (averaged weights where the run kept them) and its run's settings.

    The checkpoint is read as tensors and plain values, and may only name classes of
    distill.students. Raises DistillError for any other file.
    """
    try:
        saved = torch.load(checkpoint, map_location="cpu", weights_only=True)
        settings = saved["distill"]
        nodes = settings["encoder"] | {"weights": "none"}, settings["decoder"]["build"]
        for each in nodes:
            config.check_part(each, "distill.students", nn.Module)
        built = student(*nodes, settings["channels"])
        averaged = saved.get("callbacks", {}).get("StudentEMA", {}).get("average")
        live = {k.removeprefix("student."): v for k, v in saved["state_dict"].items()}
        built.load_state_dict(averaged or live)
        source = sources.source_of(settings)
    except DistillError as error:
        raise DistillError(f"{checkpoint}: {error}") from error
    except Exception as error:  # whatever a file from elsewhere may hold
        reason = f"damaged, or not a checkpoint of distill.train ({type(error).__name__})"
        raise DistillError(f"{checkpoint}: {reason}") from error
    config.check_part(source.teacher, "distill.teachers", Teacher)
    return built.eval(), settings


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
    kept = of if settings.data.kind == "photos" or gka else None
    made = DistillModule(
        student(settings.encoder, settings.decoder.build, settings.channels),
        criterion(settings),
        partial(_optimizer, settings.optimizer),
        partial(_schedule, settings.schedule),
        kept,
    )
    try:
        made.make_optimizer(made.student.parameters())  # a bad value shows now, not hours in
    except (ValueError, TypeError) as error:
        raise DistillError(f"optimizer: {error}") from error
    return made


def criterion(settings: Train) -> Criterion:
    """The terms whose weight is above 0."""
    loss = settings.loss
    if unknown := sorted(loss.weights.keys() - loss.terms.keys()):
        raise DistillError(
            f"loss.weights.{unknown[0]}: no such term; there are {', '.join(sorted(loss.terms))}"
        )
    used = {name: config.build(loss.terms[name]) for name, w in loss.weights.items() if w > 0}
    return Criterion(used, loss.weights)


def trainer(settings: Train, run: Run, *more: pl.Callback) -> pl.Trainer:
    """Lightning's trainer, writing into the run's folder."""
    t = settings.trainer
    if t.threads:
        torch.set_num_threads(t.threads)
    _mute_known_noise()
    if t.clip and t.precision != "32-true" and settings.optimizer.get("fused"):
        raise DistillError(
            f"trainer.precision={t.precision}: gradients of a fused optimiser cannot be clipped "
            "under mixed precision; set trainer.fused=false or trainer.clip=null"
        )
    try:
        return pl.Trainer(
            accelerator=t.accelerator,
            devices=t.devices,
            strategy=t.strategy,
            precision=t.precision,
            max_steps=t.max_steps,
            max_epochs=-1,
            # Several validations of equal distance, the last one at the end of the run.
            val_check_interval=_val_interval(t.max_steps, t.val_every) * t.accumulate,
            check_val_every_n_epoch=None,
            log_every_n_steps=min(t.log_every, t.max_steps),
            gradient_clip_val=t.clip,
            accumulate_grad_batches=t.accumulate,
            num_sanity_val_steps=0,
            use_distributed_sampler=False,
            enable_model_summary=False,
            enable_progress_bar=False,
            logger=TensorBoardLogger(str(run.folder), name="tensorboard", version=""),
            callbacks=[*_callbacks(settings, run), *more],
        )
    except (ValueError, RuntimeError, pl.utilities.exceptions.MisconfigurationException) as error:
        raise DistillError(f"trainer: {' '.join(str(error).split())}") from error


def _callbacks(settings: Train, run: Run) -> list[pl.Callback]:
    folder = str(run.last.parent)
    common: dict[str, Any] = {"dirpath": folder, "enable_version_counter": False}
    callbacks: list[pl.Callback] = [
        Progress(),
        Previews(run.folder / "previews"),
        Health(),
        MetricsTable(run.folder / "metrics.csv"),
        LearningRateMonitor("step"),
        Provenance(asdict(settings)),
        ModelCheckpoint(filename="best", monitor="val/loss", **common),
        ModelCheckpoint(filename="last", train_time_interval=timedelta(seconds=30), **common),
    ]
    return [StudentEMA(settings.ema), *callbacks] if settings.ema else callbacks


def _photo_sets(settings: Train) -> tuple[PhotoSet, PhotoSet]:
    d, size = settings.data, settings.style.resolution
    sides = split(sources.photos(settings), d.val_fraction, d.split_seed)
    train = PhotoSet(
        sides["train"], d.crop_size or size, True, settings.crop, d.colour, settings.seed
    )
    return train, PhotoSet(sides["val"], size, False, settings.crop)


def _pair_sets(settings: Train, of: Teacher | None) -> tuple[PairSet, PairSet]:
    if sources.needs_labels(settings):
        assert of is not None
        sources.prepare(settings, of)
    root = sources.pairs_root(settings)
    sides = find_pairs(
        root, settings.style.name, settings.data.val_fraction, settings.data.split_seed
    )
    if not sides["train"]:
        raise DistillError(f"{root}: has val/ but no train/, nothing to learn from")
    common: dict[str, Any] = {"size": settings.style.resolution, "alpha": settings.channels == 4}
    augment = settings.data
    train = PairSet(
        sides["train"],
        train=True,
        crop_size=augment.crop_size,
        flip=augment.flip,
        seed=settings.seed,
        **common,
    )
    return train, PairSet(sides["val"], train=False, **common)


def _optimizer(node: dict[str, Any], parameters: Any) -> torch.optim.Optimizer:
    return config.build(node, params=parameters)


def _schedule(
    node: dict[str, Any], optimizer: torch.optim.Optimizer, total_steps: int, val_every: int
) -> Any:
    return config.build(node, optimizer=optimizer, total_steps=total_steps, val_every=val_every)


def _val_interval(max_steps: int, val_every: int) -> int:
    """The divisor of the run's length next to `val_every`: the last validation is at its end."""
    divisors = [d for d in range(1, max_steps + 1) if max_steps % d == 0 and 2 * d >= val_every]
    return min(divisors or [max_steps], key=lambda d: abs(d - val_every))


def _mute_known_noise() -> None:
    """Lightning's advertisements, and advice that does not apply to this use of it."""
    logging.getLogger("pytorch_lightning").setLevel(logging.WARNING)
    for text in (
        ".*does not have many workers.*",
        ".*exists and is not empty.*",
        ".*treespec, LeafSpec.*",
        ".*module.s. in eval mode at the start.*",  # the frozen ones
        ".*your dataloader is not resumable.*",  # it is: the stream starts at the right picture
    ):
        warnings.filterwarnings("ignore", message=text)
