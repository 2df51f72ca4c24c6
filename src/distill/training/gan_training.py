"""The recipes with adversaries: from checked settings to a trained run, step by step."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import Any

import pytorch_lightning as pl
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from distill.config.settings import Adversarial, CycleGANTrain, Pix2PixTrain
from distill.core import nodes
from distill.core.errors import DistillError
from distill.data import loaders
from distill.data.datamodule import DistillData
from distill.data.datasets import UnpairedSet
from distill.losses.adversarial import Adversary
from distill.models.students.student import Student
from distill.runs.run_folder import Run, over, step_of
from distill.training.callbacks.distance import Distance
from distill.training.cyclegan import CycleGAN
from distill.training.gan import AdversarialModule, initialise
from distill.training.pix2pix import Pix2Pix
from distill.training.schedules import make_optimizer, make_schedule
from distill.training.trainer import fit, make_trainer


def train(settings: Adversarial, run: Run) -> None:
    """Train generators and discriminators, or go on."""
    check(settings)
    pictures = data(settings)
    settings = with_length(settings, pictures)
    steps, plain = settings.trainer.max_steps, asdict(settings)
    assert steps is not None
    checkpoint = run.resumable(plain, settings.resume)
    if checkpoint and (end := over(checkpoint, steps)):
        print(f"{run.folder}: {end}")
        return
    pl.seed_everything(settings.seed, verbose=False)
    made = gan_module(settings)
    distance = Distance.of(settings.distance)
    if distance:
        check_held_out(pictures)
    # A target says more than a distance of a few pictures, which is all there is without one.
    monitor = made.monitor or (distance.monitor if distance else None)
    if settings.trainer.patience and not monitor:
        raise DistillError(
            f"trainer.patience={settings.trainer.patience}: there is nothing to watch with "
            "distance=none; take distance=auto, or leave patience out"
        )
    trainer = make_trainer(settings, run, [distance] if distance else [], monitor)
    run.start(plain, settings.resume)
    if checkpoint:
        print(f"{run.folder}: resumes at step {step_of(checkpoint)} (resume=false starts anew)")
    else:
        passes = steps / pictures.batches_per_pass
        print(f"{run.folder}: a new run of {steps} batches ({passes:.3g} epochs)")
    fit(trainer, made, pictures, run, checkpoint)


def check(settings: Adversarial) -> None:
    """What the recipes cannot do of what the settings can say."""
    t = settings.trainer
    if t.accumulate > 1 or t.compile:
        key = "accumulate" if t.accumulate > 1 else "compile"
        value = getattr(t, key)
        raise DistillError(f"trainer.{key}={value}: not with recipe={settings.recipe}; leave it")
    if t.devices != 1 or t.strategy != "auto":
        raise DistillError(
            f"trainer.devices={t.devices} strategy={t.strategy}: recipe={settings.recipe} trains "
            "on one device; set trainer.devices=1 trainer.strategy=auto"
        )
    adversary: Adversary = nodes.build(settings.adversarial)
    if adversary.penalty and settings.discriminator.get("norm", "batch") == "batch":
        raise DistillError(
            "discriminator.norm=batch: a gradient penalty is one picture's, and batch statistics "
            "tie them together; set discriminator.norm=none"
        )


def check_held_out(pictures: DistillData) -> None:
    """Whether a distance can be had of them; known before the first step, not after hundreds."""
    val = pictures.val
    looks = val.looks.values() if isinstance(val, UnpairedSet) else [val]
    count = min(len(look) for look in looks)  # type: ignore[arg-type]
    Distance.check(min(count, pictures.val_limit or count))


def data(settings: Adversarial) -> DistillData:
    """The pictures of the settings' recipe."""
    if isinstance(settings, Pix2PixTrain):
        return loaders.paired(settings)
    assert isinstance(settings, CycleGANTrain)
    return loaders.unpaired(settings)


def with_length(settings: Adversarial, pictures: DistillData) -> Adversarial:
    """The settings with the run's length in batches: as given, or that of all its epochs."""
    epochs = settings.epochs + settings.decay_epochs
    steps = settings.trainer.max_steps or _even(
        max(1, round(epochs * pictures.batches_per_pass)), settings.trainer.val_every
    )
    return replace(settings, trainer=replace(settings.trainer, max_steps=steps))


def _even(steps: int, val_every: int) -> int:
    """To whole distances between validations, the last of which is at the end of the run."""
    return steps if steps < val_every else round(steps / val_every) * val_every


def gan_module(settings: Adversarial) -> AdversarialModule:
    """The recipe's networks, and how they are optimised."""
    adversary: Adversary = nodes.build(settings.adversarial)
    common: dict[str, Any] = {
        "adversary": adversary,
        "make_optimizer": partial(make_optimizer, settings.optimizer),
        "make_schedule": partial(make_schedule, settings.schedule),
        "lr": settings.lr,
        "clip": settings.trainer.clip,
        "seed": settings.seed,
    }
    made: AdversarialModule
    if isinstance(settings, Pix2PixTrain):
        judge = _discriminator(settings, 3 + settings.channels)
        made = Pix2Pix(_generator(settings), judge, l1=settings.l1, **common)
    else:
        assert isinstance(settings, CycleGANTrain)
        made = CycleGAN(
            _generator(settings),
            _generator(settings),
            _discriminator(settings, 3),
            _discriminator(settings, 3),
            cycle=settings.cycle,
            identity=settings.identity,
            pool=settings.pool,
            **common,
        )
    _try_optimizer(made, settings)
    return made


def _generator(settings: Adversarial) -> nn.Module:
    size, channels = settings.data.crop_size, settings.channels
    made = nodes.build(settings.generator.build, size=size, in_channels=3, out_channels=channels)
    return made if isinstance(made, Student) else initialise(made)  # a student knows its own


def _discriminator(settings: Adversarial, channels: int) -> nn.Module:
    return initialise(nodes.build(settings.discriminator, channels=channels))


def _try_optimizer(made: AdversarialModule, settings: Adversarial) -> None:
    """Show a bad value at once."""
    try:
        optimizer = made.make_optimizer(made.generators[0].parameters(), made.lr)
    except (ValueError, TypeError) as error:
        raise DistillError(f"optimizer: {error}") from error
    schedule = made.make_schedule(optimizer, 1, 1) or {}
    if isinstance(schedule.get("scheduler"), ReduceLROnPlateau):
        raise DistillError(
            f"schedule=plateau: two networks against each other have no loss that falls; with "
            f"recipe={settings.recipe} take schedule=linear, cosine or constant"
        )
