"""Adversarial losses: of a discriminator, and of the generator that it trains.

`bce` is Goodfellow et al. 2014 in its non-saturating form, `lsgan` Mao et al. 2017, `wasserstein`
Arjovsky et al. 2017 with clipped weights or the gradient penalty of Gulrajani et al. 2017.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from distill.core.errors import DistillError

Kind = Literal["bce", "lsgan", "wasserstein"]


@dataclass(frozen=True, eq=False)
class Adversary:
    """The losses of a generator and a discriminator of patches, and their regularisation.

    `real` and `fake` are the ranges that the discriminator's labels are sampled from, uniformly and
    again for every patch; a generator's label is always a plain 1. Smoothing one side only is the
    default (Salimans et al. 2016). A critic under `wasserstein` has no labels. `noise` is the
    standard deviation, in units of [0, 1], of the instance noise (Sønderby et al. 2017) on all that
    the discriminator sees; it falls linearly to zero over `noise_epochs`. `share` multiplies the
    discriminator's loss, `penalty` is the weight of the critic's gradient penalty, `clip` the bound
    of its weights.

    Raises DistillError where these do not go together.
    """

    kind: Kind = "bce"
    real: Sequence[float] = (0.8, 1.0)
    fake: Sequence[float] = (0.0, 0.0)
    noise: float = 0.0
    noise_epochs: float = 100.0
    share: float = 0.5
    penalty: float = 0.0
    clip: float | None = None

    def __post_init__(self) -> None:
        kind, noise, noise_epochs = self.kind, self.noise, self.noise_epochs
        for name, labels in (("real", self.real), ("fake", self.fake)):
            if len(labels) != 2 or labels[0] > labels[1]:
                raise DistillError(
                    f"adversarial.{name}={list(labels)}: want two values, [LOW,HIGH]"
                )
        if kind not in get_args(Kind):
            raise DistillError(f"adversarial.kind={kind}: choose from {', '.join(get_args(Kind))}")
        bounds = (self.penalty > 0) + (self.clip is not None)
        if kind == "wasserstein" and bounds != 1:
            raise DistillError(
                "adversarial.kind=wasserstein: a critic needs one bound, adversarial.penalty=10 or "
                "adversarial.clip=0.01"
            )
        if kind != "wasserstein" and bounds:
            raise DistillError(
                f"adversarial.kind={kind}: penalty and clip bound a critic; for them take "
                "adversarial=wasserstein"
            )
        if not (0 <= noise < float("inf") and noise_epochs > 0):  # nan too
            raise DistillError(
                f"adversarial.noise={noise} noise_epochs={noise_epochs}: want 0 or more, above 0"
            )

    def discriminator_loss(
        self, discriminator: nn.Module, real: Tensor, fake: Tensor
    ) -> DiscriminatorLoss:
        """On real pictures and fakes, both (N, C, H, W); no gradient reaches the pictures."""
        real, fake = real.detach(), fake.detach()
        on_real, on_fake = discriminator(real), discriminator(fake)
        loss = self._loss(True, on_real, self.real) + self._loss(False, on_fake, self.fake)
        loss = self.share * loss
        if self.penalty:
            loss = loss + self.penalty * gradient_penalty(discriminator, real, fake)
        return DiscriminatorLoss(loss, self._mean(on_real), self._mean(on_fake))

    def generator_loss(self, logits: Tensor) -> Tensor:
        """Of the discriminator's logits for fakes, which should pass for real pictures."""
        return self._loss(True, logits, (1.0, 1.0))

    def clip_weights(self, critic: nn.Module) -> None:
        """After the critic's step: weights within ±`clip`, the first form of its bound."""
        if self.clip is not None:
            with torch.no_grad():
                for value in critic.parameters():
                    value.clamp_(-self.clip, self.clip)

    def noise_at(self, epoch: float) -> float:
        """Standard deviation of the instance noise after so many epochs."""
        return self.noise * max(0.0, 1.0 - epoch / self.noise_epochs)

    def _loss(self, real: bool, logits: Tensor, labels: Sequence[float]) -> Tensor:
        if self.kind == "wasserstein":  # no target: real values are to be the higher
            return -logits.mean() if real else logits.mean()
        target = smoothed(logits, labels)
        if self.kind == "lsgan":
            return F.mse_loss(logits, target)
        return F.binary_cross_entropy_with_logits(logits, target)

    def _mean(self, logits: Tensor) -> Tensor:
        """The mean of D(x) as people read it: a probability under bce, else the value itself."""
        values = logits.detach()
        return (torch.sigmoid(values) if self.kind == "bce" else values).mean()


class DiscriminatorLoss(NamedTuple):
    """A discriminator's loss, and its mean output on real pictures and on fakes."""

    loss: Tensor
    real: Tensor
    fake: Tensor


def smoothed(logits: Tensor, labels: Sequence[float]) -> Tensor:
    """A label for every logit, uniform in the range (low, high)."""
    low, high = labels
    target = torch.full_like(logits, low)
    return target if low == high else target.uniform_(low, high)


def gradient_penalty(critic: nn.Module, real: Tensor, fake: Tensor) -> Tensor:
    """Mean of (‖∇D(x̂)‖₂ − 1)² per picture, x̂ on the line between a real picture and a fake one.

    The norm is that over [-1, 1], which the critic's network speaks: half of that over [0, 1].
    """
    share = torch.rand(len(real), 1, 1, 1, device=real.device)
    # Mixed precision gives fakes of half of it.
    between = torch.lerp(real.float(), fake.float(), share).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return (gradient.flatten(1).norm(dim=1) / 2 - 1).square().mean()


def distance(output: Tensor, target: Tensor) -> Tensor:
    """Mean absolute difference in the papers' range of [-1, 1], which λ = 100, 10 and 5 are for.

    Both are (N, C, H, W) in [0, 1]; the value is in [0, 2].
    """
    return 2 * F.l1_loss(output, target)
