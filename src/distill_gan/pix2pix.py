"""Pix2Pix (Isola et al. 2017): a generator and a discriminator learn from pairs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from distill.core.arrays import over_white
from distill.losses.feature_distance import FeatureDistance
from distill.losses.phases import Phases
from distill.metrics.similarity import psnr, ssim
from distill_gan import gan_training
from distill_gan.adversarial import distance
from distill_gan.gan import AdversarialModule
from distill_gan.settings import Box, Pix2PixTrain

SMALLEST_PART = 32  # pixels a side: a PatchGAN gives 2×2 logits for them


class Pix2Pix(AdversarialModule):
    """A batch is {photo (N, 3, S, S), target (N, 3 or 4, S, S), name}; the photo is the input.

    The discriminator takes photo and target, or photo and output, as channels of one picture. `l1`
    is the weight of the difference to the target, in the paper's range of [-1, 1], `features` that
    of the `feature_distance`, `phases` that of `Phases`. `parts` are boxes (left, top, right,
    bottom) as shares of the picture, such as eyes and mouth where faces are cropped alike: each,
    enlarged to half the picture's side, has a discriminator of `part_discriminators`, and its
    difference counts too. `shared` are the arguments of `AdversarialModule`.
    """

    def __init__(
        self,
        generator: nn.Module,
        discriminator: nn.Module,
        l1: float = 100.0,
        features: float = 0.0,
        feature_distance: nn.Module | None = None,
        phases: float = 0.0,
        parts: Sequence[Box] = (),
        part_discriminators: Sequence[nn.Module] = (),
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        # Channels-last: on a CPU a step of the separable U-Net takes 0.7 of the time.
        self.generator = generator.to(memory_format=torch.channels_last)
        self.discriminator, self.l1 = discriminator, l1
        self.features, self.feature_distance = features, feature_distance
        self.phases, self.phase_distance = phases, Phases()
        self.strict_loading = False  # no checkpoint holds the frozen VGG
        self.parts, self.part_discriminators = parts, nn.ModuleList(part_discriminators)
        self.generators = [self.generator]
        self.discriminators = [discriminator, *part_discriminators]

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # type: ignore[override]
        state = super().state_dict(*args, **kwargs)
        return {name: v for name, v in state.items() if not name.startswith("feature_distance.")}

    def forward(self, photo: Tensor) -> Tensor:
        return self.generator(photo)

    def training_step(self, batch: Mapping[str, Any], index: int) -> dict[str, Tensor]:
        photo, target = batch["photo"], batch["target"]
        of_generator, of_discriminator = self.begin_step()
        output = self.generator(photo)
        real = self.with_noise(torch.cat([photo, target], 1))
        fake = self.with_noise(torch.cat([photo, output], 1))
        views = list(zip(self.discriminators, self.views(real), self.views(fake), strict=True))

        with self.update(of_discriminator) as step:
            losses = [self.adversary.discriminator_loss(*view) for view in views]
            step(torch.stack([d.loss for d in losses]).sum())
            for discriminator in self.discriminators:
                self.adversary.clip_weights(discriminator)

        with self.update(of_generator) as step:
            fooled = [self.adversary.generator_loss(each(view)) for each, _, view in views]
            adversarial = torch.stack(fooled).sum()
            pairs = zip(self.views(output), self.views(target), strict=True)
            whole, *parts = [distance(*pair) for pair in pairs]
            loss = adversarial + self.l1 * (whole + sum(parts))
            values = {"l1": whole}
            if self.feature_distance is not None:
                values["features"] = self.feature_distance(output, target)
                loss = loss + self.features * values["features"]
            if self.phases:
                values["phases"] = self.phase_distance(output, target)
                loss = loss + self.phases * values["phases"]
            step(loss)

        # `fooled`, the adversarial loss, is a column of metrics.csv: its name stays.
        d = losses[0]
        values = {"generator": loss, "fooled": adversarial, **values, "discriminator": d.loss}
        return self.end_step(values | {"D(real)": d.real, "D(fake)": d.fake}, len(photo))

    def views(self, picture: Tensor) -> Iterator[Tensor]:
        """The picture (N, C, H, W), and its parts at half its side: a discriminator's each."""
        yield picture
        height, width = picture.shape[-2:]
        side = max(SMALLEST_PART, height // 2), max(SMALLEST_PART, width // 2)
        for left, top, right, bottom in self.parts:
            rows = slice(round(top * height), round(bottom * height))
            columns = slice(round(left * width), round(right * width))
            yield F.interpolate(picture[..., rows, columns], side, mode="bilinear")

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
    channels = 3 + settings.channels
    # First: in the other order a seed would give the networks of earlier runs other weights.
    discriminator = gan_training.discriminator(settings.discriminator, channels)
    generator = gan_training.generator(settings)
    parts = [gan_training.discriminator(settings.discriminator, channels) for _ in settings.parts]
    features = None
    if settings.features:
        features = FeatureDistance(settings.style_backbone, side=settings.features_side)
    return Pix2Pix(
        generator,
        discriminator,
        l1=settings.l1,
        features=settings.features,
        feature_distance=features,
        phases=settings.phases,
        parts=settings.parts,
        part_discriminators=parts,
        **gan_training.common(settings),
    )
