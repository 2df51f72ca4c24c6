"""What goes along with the training of a student: its average, its health, late loss terms."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from distill.models.batchnorm import fold_batchnorm

ALIVE = 1e-3  # of the layer's largest weight


class StudentEMA(pl.Callback):
    """Keeps averaged weights of `module.student`, validates with them and saves them.

    Lightning's own averaging deep-copies the whole module, teacher and VGG included. The decay
    rises as (1 + n) / (10 + n) up to `decay`, so that a short run is not held back by its random
    start. BatchNorm statistics are averaged with the weights.
    """

    def __init__(self, decay: float = 0.999) -> None:
        self.decay, self.updates = decay, 0
        self.average: dict[str, torch.Tensor] = {}
        self._student: dict[str, torch.Tensor] = {}  # the tensors that training changes in place
        self._live: dict[str, torch.Tensor] | None = None

    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        self._student = pl_module.student.state_dict()
        if not self.average:
            self.average = deepcopy(self._student)
        self.average = {k: v.to(pl_module.device) for k, v in self.average.items()}

    @torch.no_grad()
    def on_train_batch_end(self, trainer: pl.Trainer, *_rest: object) -> None:
        if trainer.global_step <= self.updates:
            return  # gradients are being accumulated: no step was taken
        self.updates = trainer.global_step
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        live = self._student
        moving = [name for name, value in live.items() if value.is_floating_point()]
        # All tensors in one go: a GPU would wait for some hundred launches of a few microseconds.
        get_ema_multi_avg_fn(decay)(
            [self.average[name] for name in moving], [live[name] for name in moving], 0
        )
        for name in live.keys() - {*moving}:
            self.average[name].copy_(live[name])

    def on_validation_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if self.average:
            self._live = deepcopy(pl_module.student.state_dict())
            pl_module.student.load_state_dict(self.average)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if self._live is not None:
            pl_module.student.load_state_dict(self._live)
            self._live = None

    def state_dict(self) -> dict[str, Any]:
        return {"average": self.average, "updates": self.updates}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.average, self.updates = state_dict["average"], state_dict["updates"]


class Health(pl.Callback):
    """Logs the share of nonzero weights, dead channels and subnormal weights per validation.

    Of the 366,407 weights of the paper's released paprika student 25,412 are alive: coupled
    weight decay ate the rest.
    """

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        shares = weight_shares(fold_batchnorm(pl_module.student))
        names = ("living_weights", "dead_channels", "subnormal_weights")
        values = {f"health/{name}": share for name, share in zip(names, shares, strict=True)}
        pl_module.log_dict(values, sync_dist=True)


class LateTerms(pl.Callback):
    """Tells the criterion before each batch how far the run is, by its steps alone.

    So a resumed run trains the same terms. A callback and not part of the step, because the
    learning-rate finder's steps do not count as steps of the run.
    """

    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: Any, *_rest: object) -> None:
        pl_module.criterion.advance(trainer.global_step / trainer.max_steps)


class WeightShares(NamedTuple):
    """Of all convolutions' weights or output channels, in [0, 1].

    `nonzero` weights are at least 1e-3 of their layer's largest. Every weight of a `dead` channel
    is below. `subnormal` ones are not zero but below float32's 1.18e-38; arithmetic with them is up
    to 100 times slower.
    """

    nonzero: float
    dead: float
    subnormal: float


def weight_shares(network: nn.Module) -> WeightShares:
    """The shares of a network with at least one convolution, whose BatchNorm is folded."""
    nonzero, dead, subnormal = list[Tensor](), list[Tensor](), list[Tensor]()
    for module in network.modules():
        if not isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
            continue
        weight = module.weight.detach()
        if isinstance(module, nn.ConvTranspose2d):  # it lies as (inputs, outputs of a group, …)
            grouped = weight.unflatten(0, (module.groups, -1))
            weight = grouped.transpose(1, 2).flatten(0, 1)
        sizes = weight.flatten(1).abs()  # (output channels, inputs · kernel)
        largest = sizes.max()
        nonzero.append(((sizes >= ALIVE * largest) & (largest > 0)).flatten())
        dead.append(sizes.amax(1) < ALIVE * largest.clamp_min(1e-30))
        subnormal.append(((sizes > 0) & (sizes < torch.finfo(torch.float32).tiny)).flatten())
    return WeightShares(
        *(float(torch.cat(each).float().mean()) for each in (nonzero, dead, subnormal))
    )
