"""Optimisers and learning-rate schedules; conf/optimizer and conf/schedule choose one each.

A schedule is given as Lightning takes it. `total_steps` is the run's length in optimiser steps,
`val_every` the batches between validations.
"""

import math
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, ReduceLROnPlateau

from distill.core import nodes
from distill.core.errors import DistillError, of_the_user
from distill.core.nodes import Node

MakeOptimizer = Callable[[Iterable[nn.Parameter], float], Optimizer]
MakeSchedule = Callable[[Optimizer, int, int], dict[str, Any] | None]
DEFAULT_RATE = 1e-3  # where lr=auto finds none


def make_optimizer(node: Node, parameters: Iterable[nn.Parameter], lr: float) -> Optimizer:
    """The optimiser of a node over these parameters. Raises DistillError for a value it refuses."""
    try:
        return nodes.part("optimizer", node, Optimizer, params=parameters, lr=lr)
    except (ValueError, TypeError) as error:
        raise DistillError(f"optimizer: {error}") from error


def make_schedule(
    node: Node, optimizer: Optimizer, total_steps: int, val_every: int
) -> dict[str, Any] | None:
    """The schedule of a node, as Lightning takes it; None for a rate that stays.

    A scheduler alone is one of steps: the whole run is a single epoch.
    """
    with of_the_user("schedule: its constructor") if nodes.is_plugin(node) else nullcontext():
        length = {"total_steps": total_steps, "val_every": val_every}
        schedule = nodes.build(node, optimizer=optimizer, **length)
    if schedule is not None and not isinstance(schedule, (LRScheduler, dict)):
        raise DistillError(f"schedule: gave a {type(schedule).__name__}, want a scheduler of torch")
    if isinstance(schedule, LRScheduler):
        return {"scheduler": schedule, "interval": "step"}
    return schedule


def clip_gradients(optimizer: Optimizer, norm: float) -> None:
    """Clip the norm of all gradients of an optimiser's parameters, in place.

    Lightning's own clipping refuses a fused optimiser under any mixed precision.
    """
    values = [value for group in optimizer.param_groups for value in group["params"]]
    nn.utils.clip_grad_norm_(values, norm)


def cosine(
    optimizer: Optimizer, total_steps: int, val_every: int, warmup: int = 100, floor: float = 0.01
) -> dict[str, Any]:
    """Linear rise over `warmup` steps, then half a cosine down to `floor` times the rate.

    The warm-up never takes more than a tenth of the run.
    """
    rise = max(1, min(warmup, total_steps // 10))

    def factor(step: int) -> float:
        if step < rise:
            return (step + 1) / rise
        done = min(1.0, (step - rise) / max(1, total_steps - rise))
        return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * done))

    return {"scheduler": LambdaLR(optimizer, factor), "interval": "step"}


def plateau(
    optimizer: Optimizer,
    total_steps: int,
    val_every: int,
    factor: float = 0.5,
    patience: int = 5,
    threshold: float = 1e-3,
) -> dict[str, Any]:
    """Times `factor` after `patience` validations without val/loss falling by `threshold` of it."""
    scheduler = ReduceLROnPlateau(optimizer, factor=factor, patience=patience, threshold=threshold)
    # By steps, at the distance of the validations: the whole run is a single epoch.
    # Not strict: a run that resumes right after a validation has done this step already.
    when = {"interval": "step", "frequency": val_every, "monitor": "val/loss", "strict": False}
    return {"scheduler": scheduler, **when}


def linear(
    optimizer: Optimizer, total_steps: int, val_every: int, epochs: float, decay_epochs: float
) -> dict[str, Any]:
    """The full rate, then a straight line to zero at the end of the run (Zhu et al. 2017).

    `epochs` and `decay_epochs` share the run's steps between the two.
    """
    held = total_steps * epochs / (epochs + decay_epochs)

    def factor(step: int) -> float:
        left = total_steps - step
        return min(1.0, max(0.0, left / (total_steps - held))) if held < total_steps else 1.0

    return {"scheduler": LambdaLR(optimizer, factor), "interval": "step"}


def constant(optimizer: Optimizer, total_steps: int, val_every: int) -> None:
    """The rate stays what it is."""
