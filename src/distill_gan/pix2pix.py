"""Pix2Pix (Isola et al. 2017): a generator and a discriminator learn from pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from distill.core.arrays import over_white
from distill.metrics.similarity import psnr, ssim
from distill_gan import gan_training
from distill_gan.adversarial import distance
from distill_gan.gan import AdversarialModule
from distill_gan.settings import Pix2PixTrain


class Pix2Pix(AdversarialModule):
    """A batch is {photo (N, 3, S, S), target (N, 3 or 4, S, S), name}; the photo is the input.

    The discriminator takes photo and target, or photo and output, as channels of one picture. `l1`
    is the weight of the difference to the target, in the paper's range of [-1, 1]; `shared` are
    the arguments of `AdversarialModule`.
    """

    monitor = "val/l1"

    def __init__(
        self,
        generator: nn.Module,
        discriminator: nn.Module,
        l1: float = 100.0,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        # Channels-last: on a CPU a step of the separable U-Net takes 0.7 of the time.
        self.generator = generator.to(memory_format=torch.channels_last)
        self.discriminator, self.l1 = discriminator, l1

    @property
    def generators(self) -> list[nn.Module]:
        return [self.generator]

    @property
    def discriminators(self) -> list[nn.Module]:
        return [self.discriminator]

    def forward(self, photo: Tensor) -> Tensor:
        return self.generator(photo)

    def training_step(self, batch: Mapping[str, Any], index: int) -> dict[str, Tensor]:
        photo, target = batch["photo"], batch["target"]
        of_generator, of_discriminator = self.begin_step()
        output = self.generator(photo)
        real = self.with_noise(torch.cat([photo, target], 1))
        fake = self.with_noise(torch.cat([photo, output], 1))

        with self.update(of_discriminator) as step:
            d = self.adversary.discriminator_loss(self.discriminator, real, fake)
            step(d.loss)
            self.adversary.clip_weights(self.discriminator)

        with self.update(of_generator) as step:
            adversarial = self.adversary.generator_loss(self.discriminator(fake))
            l1 = distance(output, target)
            loss = adversarial + self.l1 * l1
            step(loss)

        # `fooled`, the adversarial loss, is a column of metrics.csv: its name stays.
        values = {"generator": loss, "fooled": adversarial, "l1": l1, "discriminator": d.loss}
        return self.end_step(values | {"D(real)": d.real, "D(fake)": d.fake}, len(photo))

    def validation_step(self, batch: Mapping[str, Any], index: int) -> dict[str, Tensor]:
        target, output = batch["target"], self.generator(batch["photo"])
        pair = over_white(output), over_white(target)
        values = {"l1": distance(output, target)}
        values |= {"psnr": psnr(*pair).mean(), "ssim": ssim(*pair).mean()}
        self.log_dict({f"val/{k}": v for k, v in values.items()}, batch_size=len(target))
        return {"output": output, "target": target}

    def preview(self, batch: Mapping[str, Any]) -> dict[str, Tensor]:
        """Columns of the sheet of samples by their titles."""
        photo = batch["photo"]
        return {"input": photo, "output": self.generator(photo), "target": batch["target"]}


def pix2pix_module(settings: Pix2PixTrain) -> Pix2Pix:
    # First: in the other order a seed would give the networks of earlier runs other weights.
    discriminator = gan_training.discriminator(settings.discriminator, 3 + settings.channels)
    return Pix2Pix(
        gan_training.generator(settings),
        discriminator,
        l1=settings.l1,
        **gan_training.common(settings),
    )
