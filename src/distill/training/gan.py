"""What recipes with adversaries share: whose turn it is, chance, schedules, and what is logged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.core.optimizer import LightningOptimizer
from torch import Tensor, nn
from torch.optim import Optimizer

from distill.data.augment import rng_for
from distill.data.datamodule import DistillData
from distill.losses.adversarial import Adversary

MakeOptimizer = Callable[[Iterable[nn.Parameter], float], Optimizer]
MakeSchedule = Callable[[Optimizer, int, int], dict[str, Any] | None]


class AdversarialModule(pl.LightningModule):
    """Generators and discriminators with an optimiser each, stepped by hand, one batch a step.

    A recipe says in `training_step` what happens, in `generators` and `discriminators` what
    learns. `lr` is the rate of both optimisers, `clip` the largest norm of a turn's gradients.
    The draws of step k (dropout, labels, noise, pools) depend on `seed` and k alone, so that a run
    that goes on draws what it would have drawn.
    """

    monitor: str | None  # what says which checkpoint is the best: smaller is better

    def __init__(
        self,
        adversary: Adversary,
        make_optimizer: MakeOptimizer,
        make_schedule: MakeSchedule,
        lr: float,
        clip: float | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.adversary = adversary
        self.make_optimizer, self.make_schedule, self.lr = make_optimizer, make_schedule, lr
        self.clip, self.seed = clip, seed
        self._noise = 0.0  # standard deviation of this step's instance noise

    @property
    def generators(self) -> list[nn.Module]:
        """The networks that draw."""
        raise NotImplementedError

    @property
    def discriminators(self) -> list[nn.Module]:
        """The networks that judge."""
        raise NotImplementedError

    def configure_optimizers(self) -> Any:
        """The generators' optimiser and the discriminators', each with its schedule."""
        val_every = int(self.trainer.val_check_interval)
        optimizers, schedules = [], []
        for networks in (self.generators, self.discriminators):
            optimizers.append(self.make_optimizer(_parameters(networks), self.lr))
            schedule = self.make_schedule(optimizers[-1], self.trainer.max_steps, val_every)
            schedules += [schedule] if schedule else []
        return optimizers, schedules

    def begin(self) -> tuple[LightningOptimizer, LightningOptimizer]:
        """Begin a step: its own chance, and both optimisers, the generators' first.

        Lightning counts every optimiser's steps, and ends the run by that count; the counting
        hooks are left to one of the two, so that a step is a batch here as everywhere.
        """
        data = self.trainer.datamodule  # type: ignore[attr-defined]
        assert isinstance(data, DistillData)
        self._noise = self.adversary.noise_at(self.global_step / data.batches_per_pass)
        rank, step = self.global_rank, self.global_step
        torch.manual_seed(int(rng_for(self.seed, "step", step, rank).integers(2**63)))
        optimizers = self.optimizers()
        assert isinstance(optimizers, list)
        drawing, judging = optimizers
        judging._on_before_step = judging._on_after_step = _uncounted
        return drawing, judging

    @contextmanager
    def turn(self, optimizer: LightningOptimizer) -> Iterator[Callable[[Tensor], None]]:
        """A turn of one side: the other's weights take no gradient, whatever the loss touches.

        Gives a function that takes the loss and makes the step.
        """
        self.toggle_optimizer(optimizer)

        def step(loss: Tensor) -> None:
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.step()

        yield step
        self.untoggle_optimizer(optimizer)

    def on_before_optimizer_step(self, optimizer: Optimizer) -> None:
        # Here a loss that was scaled for half precision has its gradients' own size again. Not by
        # Lightning's own, which refuses a fused optimiser under any mixed precision.
        if self.clip:
            values = [p for group in optimizer.param_groups for p in group["params"]]
            nn.utils.clip_grad_norm_(values, self.clip)

    def finish(self, values: Mapping[str, Tensor | float], count: int) -> dict[str, Tensor]:
        """End a step: schedules move on, `values` are logged; what callbacks look at."""
        for schedule in _listed(self.lr_schedulers()):
            schedule.step()
        shown = {f"train/{name}": value for name, value in values.items()}
        self.log_dict(shown, batch_size=count)
        return {"loss": torch.as_tensor(values["generator"]).detach()}

    def seen(self, picture: Tensor) -> Tensor:
        """A picture as discriminators are shown it: with the instance noise of this step."""
        return picture + self._noise * torch.randn_like(picture) if self._noise else picture


def initialise(network: nn.Module, deviation: float = 0.02) -> nn.Module:
    """Weights from N(0, `deviation`), norms' scales from N(1, `deviation`), biases 0, in place.

    As both papers begin.
    """
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
            nn.init.normal_(module.weight, 0.0, deviation)
        elif isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.weight, 1.0, deviation)
        else:
            continue
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    return network


def _parameters(networks: Iterable[nn.Module]) -> list[nn.Parameter]:
    return [value for network in networks for value in network.parameters()]


def _listed(schedules: Any) -> list[Any]:
    if schedules is None:
        return []
    return schedules if isinstance(schedules, list) else [schedules]


def _uncounted() -> None:
    """In the place of Lightning's count of an optimiser's step."""
