"""What the recipes with a discriminator share: steps, random numbers, schedules, and logging."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.core.optimizer import LightningOptimizer
from torch import Tensor, nn
from torch.optim import Optimizer

from distill.data.augment import rng_for
from distill.data.datamodule import DistillData
from distill.train.schedules import MakeOptimizer, MakeSchedule, clip_gradients
from distill_gan.adversarial import Adversary


class AdversarialModule(pl.LightningModule):
    """Generators and discriminators with an optimiser each, stepped by hand, one batch a step.

    A recipe says in `training_step` what happens, in `generators` and `discriminators` what
    learns. `lr` is the rate of both optimisers, `clip` the largest norm of an update's gradients.
    The random numbers of step k (dropout, labels, noise, pools) depend on `seed` and k alone, so
    that a resumed run has those that it would have had.
    """

    progress = ("train/generator", "train/discriminator", "val/frechet")  # beside the progress
    generators: list[nn.Module]  # the networks that the first optimiser trains
    discriminators: list[nn.Module]  # and those that the second one does

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

    def configure_optimizers(self) -> Any:
        """The generators' optimiser and the discriminators', each with its schedule."""
        val_every = int(self.trainer.val_check_interval)
        optimizers, schedules = [], []
        for networks in (self.generators, self.discriminators):
            values = [value for network in networks for value in network.parameters()]
            optimizers.append(self.make_optimizer(values, self.lr))
            schedule = self.make_schedule(optimizers[-1], self.trainer.max_steps, val_every)
            schedules += [schedule] if schedule else []
        return optimizers, schedules

    def begin_step(self) -> tuple[LightningOptimizer, LightningOptimizer]:
        """Seed the step's random numbers; gives the generators' optimiser and the discriminators'.

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
        of_generators, of_discriminators = optimizers
        of_discriminators._on_before_step = of_discriminators._on_after_step = lambda: None
        return of_generators, of_discriminators

    @contextmanager
    def update(self, optimizer: LightningOptimizer) -> Iterator[Callable[[Tensor], None]]:
        """An optimiser's update: weights of the other one take no gradient, whatever the loss is.

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
        # Here a loss that was scaled for half precision has its gradients' own size again.
        if self.clip:
            clip_gradients(optimizer, self.clip)

    def end_step(self, values: Mapping[str, Tensor | float], count: int) -> dict[str, Tensor]:
        """Advance the schedules and log `values` of `count` pictures; gives what callbacks read."""
        schedules: Any = self.lr_schedulers()
        for schedule in schedules or ():
            schedule.step()
        self.log_dict({f"train/{name}": v for name, v in values.items()}, batch_size=count)
        return {"loss": torch.as_tensor(values["generator"]).detach()}

    def with_noise(self, picture: Tensor) -> Tensor:
        """A picture as discriminators are given it: with the instance noise of this step."""
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
