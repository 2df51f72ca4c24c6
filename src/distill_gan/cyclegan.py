"""CycleGAN (Zhu et al. 2017): two domains of pictures, learnt without pairs."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from distill.losses.phases import Phases
from distill_gan import gan_training
from distill_gan.adversarial import DiscriminatorLoss, distance
from distill_gan.gan import AdversarialModule
from distill_gan.settings import CycleGANTrain


class CycleGAN(AdversarialModule):
    """A batch is {a (N, 3, S, S), b (N, 3, S, S), name}, pictures of two domains, no pairs.

    `a_to_b` translates A to B, `b_to_a` B to A; the discriminator `judge_a` tells real pictures of
    A from fakes, `judge_b` those of B. `cycle` and `identity` are weights of differences in the
    paper's range of [-1, 1], `phases` is that of `Phases` between a translation and its photo,
    `pool` the number of earlier fakes kept for each discriminator; `shared` are the arguments of
    `AdversarialModule`.
    """

    def __init__(
        self,
        a_to_b: nn.Module,
        b_to_a: nn.Module,
        judge_a: nn.Module,
        judge_b: nn.Module,
        cycle: float = 10.0,
        identity: float = 5.0,
        pool: int = 50,
        phases: float = 0.0,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        # These names are keys of checkpoints, so they stay.
        self.a_to_b, self.b_to_a = a_to_b, b_to_a
        self.judge_a, self.judge_b = judge_a, judge_b
        self.pool_a, self.pool_b = ImagePool(pool), ImagePool(pool)
        self.cycle, self.identity = cycle, identity
        self.phases, self.phase_distance = phases, Phases()
        self.generators, self.discriminators = [a_to_b, b_to_a], [judge_a, judge_b]

    def forward(self, a: Tensor) -> Tensor:
        return self.a_to_b(a)

    def training_step(self, batch: Mapping[str, Any], index: int) -> dict[str, Tensor]:
        a, b = batch["a"], batch["b"]
        of_generators, of_discriminators = self.begin_step()
        like_b, like_a = self.a_to_b(a), self.b_to_a(b)

        with self.update(of_generators) as step:
            for_b = self.adversary.generator_loss(self.judge_b(self.with_noise(like_b)))
            for_a = self.adversary.generator_loss(self.judge_a(self.with_noise(like_a)))
            adversarial, cycle = for_b + for_a, self._cycle_loss(a, b, like_a, like_b)
            loss = adversarial + self.cycle * cycle
            identity = loss.new_zeros(())
            if self.identity:
                identity = self._identity_loss(a, b)
                loss = loss + self.identity * identity
            extra = {}
            if self.phases:
                extra["phases"] = self.phase_distance(like_b, a) + self.phase_distance(like_a, b)
                loss = loss + self.phases * extra["phases"]
            step(loss)

        with self.update(of_discriminators) as step:
            d_a = self._discriminator_loss(self.judge_a, a, self.pool_a(like_a))
            d_b = self._discriminator_loss(self.judge_b, b, self.pool_b(like_b))
            step(d_a.loss + d_b.loss)
            for discriminator in self.discriminators:
                self.adversary.clip_weights(discriminator)

        # `fooled`, the adversarial loss, is a column of metrics.csv: its name stays.
        values = {"generator": loss, "fooled": adversarial, "cycle": cycle, "identity": identity}
        values |= {**extra, "discriminator": d_a.loss + d_b.loss}
        values |= {"D_A(real)": d_a.real, "D_A(fake)": d_a.fake}
        return self.end_step(values | {"D_B(real)": d_b.real, "D_B(fake)": d_b.fake}, len(a))

    def validation_step(self, batch: Mapping[str, Any], index: int) -> dict[str, Tensor]:
        a, b = batch["a"], batch["b"]
        like_b, like_a = self.a_to_b(a), self.b_to_a(b)
        values = {"val/cycle": self._cycle_loss(a, b, like_a, like_b)}
        self.log_dict(values | {"val/identity": self._identity_loss(a, b)}, batch_size=len(a))
        return {"to_a": like_a, "a": a, "to_b": like_b, "b": b}

    def preview(self, batch: Mapping[str, Any]) -> dict[str, Tensor]:
        """Columns of the sheet of samples by their titles."""
        a, b = batch["a"], batch["b"]
        like_b, like_a = self.a_to_b(a), self.b_to_a(b)
        return {
            "A": a,
            "A to B": like_b,
            "to A again": self.b_to_a(like_b),
            "A to A": self.b_to_a(a),
            "B": b,
            "B to A": like_a,
            "to B again": self.a_to_b(like_a),
            "B to B": self.a_to_b(b),
        }

    def _cycle_loss(self, a: Tensor, b: Tensor, like_a: Tensor, like_b: Tensor) -> Tensor:
        return distance(self.b_to_a(like_b), a) + distance(self.a_to_b(like_a), b)

    def _identity_loss(self, a: Tensor, b: Tensor) -> Tensor:
        return distance(self.a_to_b(b), b) + distance(self.b_to_a(a), a)

    def _discriminator_loss(
        self, discriminator: nn.Module, real: Tensor, fake: Tensor
    ) -> DiscriminatorLoss:
        return self.adversary.discriminator_loss(
            discriminator, self.with_noise(real), self.with_noise(fake)
        )


class ImagePool(nn.Module):
    """Fakes of earlier steps for a discriminator (Shrivastava et al. 2017).

    Keeps up to `size` fakes; gives each of a batch back or, half of the time, an older one,
    in the same shape. A fake that is exchanged takes the older one's place. Its
    pictures are in the state dict, so that a resumed run has them; chance is PyTorch's generator.
    """

    pictures: Tensor

    def __init__(self, size: int = 50) -> None:
        super().__init__()
        self.size = size
        self.register_buffer("pictures", torch.empty(0))

    @torch.no_grad()
    def forward(self, fakes: Tensor) -> Tensor:
        if self.size == 0:
            return fakes.detach()
        return torch.stack([self._one(fake) for fake in fakes.detach()])

    def _one(self, fake: Tensor) -> Tensor:
        held = len(self.pictures)
        if held < self.size:
            self.pictures = torch.cat([self.pictures.to(fake), fake[None]])
            return fake
        if torch.rand(()) < 0.5:
            return fake
        index = int(torch.randint(held, ()))
        older = self.pictures[index].clone()
        self.pictures[index] = fake
        return older

    def _load_from_state_dict(  # type: ignore[override]
        self, state: Any, prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        """As many pictures as the state has: an empty pool takes any number."""
        saved = state.get(f"{prefix}pictures")
        if saved is not None:
            self.pictures = torch.empty_like(saved, device=self.pictures.device)
        super()._load_from_state_dict(state, prefix, *args, **kwargs)


def cyclegan_module(settings: CycleGANTrain) -> CycleGAN:
    return CycleGAN(
        gan_training.generator(settings),
        gan_training.generator(settings),
        gan_training.discriminator(settings.discriminator, 3),
        gan_training.discriminator(settings.discriminator, 3),
        cycle=settings.cycle,
        identity=settings.identity,
        pool=settings.pool,
        phases=settings.phases,
        **gan_training.common(settings),
    )
