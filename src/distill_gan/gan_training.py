"""Recipes with a discriminator: from checked settings to a trained run, step by step."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytorch_lightning as pl
import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from distill.config.registry import recipe_named
from distill.core import nodes
from distill.core.errors import DistillError, counted
from distill.core.files import home_path
from distill.core.nodes import Node
from distill.core.state_dicts import usable
from distill.data.datamodule import DistillData
from distill.models.network_file import problems_of
from distill.models.students.student import Student
from distill.runs.run_folder import Run
from distill.train.ending import tell_finished
from distill.train.schedules import make_optimizer, make_schedule
from distill.train.trainer import fit, make_trainer
from distill_gan.adversarial import Adversary
from distill_gan.distance import Distance
from distill_gan.gan import AdversarialModule, initialise
from distill_gan.settings import Adversarial
from distill_gan.unpaired_set import UnpairedSet


def train(
    settings: Adversarial,
    run: Run,
    data: Callable[[Any], DistillData],
    module: Callable[[Any], AdversarialModule],
) -> None:
    """Train generators and discriminators, or resume; `data` and `module` are the recipe's."""
    check(settings)
    pictures = data(settings)
    settings = with_length(settings, pictures)
    steps = settings.trainer.max_steps
    assert steps is not None
    checkpoint = run.resumable(settings)
    if tell_finished(run, checkpoint, settings.trainer, "generator"):
        return
    pl.seed_everything(settings.seed, verbose=False)
    adversarial = module(settings)
    if settings.init and checkpoint is None:
        start_from(adversarial, settings.init)
    # Optimiser and schedule are built once, which shows a bad value at once.
    optimizer = adversarial.make_optimizer(adversarial.generators[0].parameters(), adversarial.lr)
    schedule = adversarial.make_schedule(optimizer, 1, 1) or {}
    if isinstance(schedule.get("scheduler"), ReduceLROnPlateau):
        raise DistillError(
            f"schedule=plateau: adversarial training has no loss that falls; with "
            f"recipe={settings.recipe} take schedule=linear, cosine or constant"
        )
    distance = measured_distance(settings, pictures)
    monitor: str | None = recipe_named(settings.recipe).monitor
    if monitor == Distance.monitor and distance is None:
        monitor = None
    if settings.trainer.patience and not monitor:
        raise DistillError(
            f"trainer.patience={settings.trainer.patience}: there is nothing to monitor with "
            "distance=none; take distance=auto, or leave patience out"
        )
    trainer = make_trainer(settings, run, [distance] if distance else [], monitor)
    passes = steps / pictures.batches_per_pass
    run.start(settings, checkpoint, f"{counted(steps, 'batch')} ({passes:.3g} epochs)")
    fit(trainer, adversarial, pictures, run, checkpoint, "generator")


def check(settings: Adversarial) -> None:
    """Raises DistillError for settings that no recipe with a discriminator can be trained with."""
    t = settings.trainer
    if t.accumulate > 1 or t.compile:
        key = "accumulate" if t.accumulate > 1 else "compile"
        typed = f"trainer.{key}={getattr(t, key)}"
        raise DistillError(f"{typed}: not with recipe={settings.recipe}; leave it out")
    if (t.devices, t.num_nodes, t.strategy) != (1, 1, "auto"):
        raise DistillError(
            f"trainer.devices={t.devices} num_nodes={t.num_nodes} strategy={t.strategy}: recipe="
            f"{settings.recipe} trains on one device; set trainer.devices=1 trainer.num_nodes=1 "
            "trainer.strategy=auto"
        )
    adversary: Adversary = nodes.build(settings.adversarial)
    if adversary.penalty and settings.discriminator.get("norm", "batch") == "batch":
        raise DistillError(
            "discriminator.norm=batch: a gradient penalty is one picture's, and batch statistics "
            "tie them together; set discriminator.norm=none"
        )


def with_length(settings: Adversarial, pictures: DistillData) -> Adversarial:
    """The settings with the run's length in batches: as given, or that of all its epochs.

    That is rounded to whole distances between validations, the last of which ends the run.
    """
    t, epochs = settings.trainer, settings.epochs + settings.decay_epochs
    steps = max(1, round(epochs * pictures.batches_per_pass))
    if steps >= t.val_every:
        steps = round(steps / t.val_every) * t.val_every
    return replace(settings, trainer=replace(t, max_steps=t.max_steps or steps))


def measured_distance(settings: Adversarial, pictures: DistillData) -> Distance | None:
    """The distance that a validation measures; with `auto` none of too few pictures, and a line.

    Raises DistillError for too few where it was asked for: before the first step, not hours later.
    """
    val = pictures.val
    domains = val.domains.values() if isinstance(val, UnpairedSet) else [val]
    count = min(len(domain) for domain in domains)  # type: ignore[arg-type]
    try:
        Distance.check(min(count, pictures.val_limit or count))
    except DistillError as few:
        if settings.distance == "auto":
            print(f"{few}; until then distance=auto is none")
            return None
        if settings.distance != "none":
            raise
    return Distance.of(settings.distance)


def start_from(module: AdversarialModule, init: str) -> None:
    """Give generators and discriminators the weights of another run's checkpoint.

    Raises DistillError for a file that is none, and for other networks than the module's.
    """
    checkpoint = home_path(init)
    if not checkpoint.is_file():
        raise DistillError(
            f"init={init}: no such file; name a checkpoint, RUN/checkpoints/last.ckpt"
        )
    with problems_of(checkpoint, "checkpoint of distill.train"):
        state = torch.load(checkpoint, map_location="cpu", weights_only=True)["state_dict"]
        state = usable(state, checkpoint.name)
    # CycleGAN's pools of earlier fakes begin empty.
    state, here = (
        {name: v for name, v in each.items() if not name.startswith("pool_")}
        for each in (state, module.state_dict())
    )
    if {name: v.shape for name, v in state.items()} != {name: v.shape for name, v in here.items()}:
        raise DistillError(
            f"init={init}: other networks than this run's; set recipe=, generator=, "
            "discriminator=, channels= and parts= as they were, or leave init out"
        )
    module.load_state_dict(state, strict=False)  # without the pools, and a frozen VGG


def common(settings: Adversarial) -> dict[str, Any]:
    """The arguments that the module of every such recipe takes."""
    return {
        "adversary": nodes.build(settings.adversarial),
        "make_optimizer": partial(make_optimizer, settings.optimizer),
        "make_schedule": partial(make_schedule, settings.schedule),
        "lr": settings.lr,
        "clip": settings.trainer.clip,
        "seed": settings.seed,
    }


def generator(settings: Adversarial) -> nn.Module:
    """A generator of the settings with its first weights."""
    size, channels = settings.data.crop_size, settings.channels
    network = nodes.build(settings.generator.build, size=size, in_channels=3, out_channels=channels)
    # A student initialises itself.
    return network if isinstance(network, Student) else initialise(network)


def discriminator(node: Node, channels: int) -> nn.Module:
    """A discriminator for that many channels, with its first weights."""
    return initialise(nodes.build(node, channels=channels))
