"""CycleGAN (Zhu et al. 2017): two looks of one kind of thing, learnt without pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from distill.losses.adversarial import Adversary, Judged, distance
from distill.models.discriminators.pool import ImagePool
from distill.training.gan import AdversarialModule, MakeOptimizer, MakeSchedule


class CycleGAN(AdversarialModule):
    """A batch is {a (N, 3, S, S), b (N, 3, S, S), name}, pictures that have nothing in common.

    `a_to_b` draws A in the look of B, `b_to_a` the other way; `judge_a` and `judge_b` say whether
    a picture is one of A, of B. `cycle` and `identity` are weights of differences in the paper's
    range of [-1, 1], `pool` the earlier fakes that each judge is shown.
    """

    monitor = None

    def __init__(
        self,
        a_to_b: nn.Module,
        b_to_a: nn.Module,
        judge_a: nn.Module,
        judge_b: nn.Module,
        adversary: Adversary,
        make_optimizer: MakeOptimizer,
        make_schedule: MakeSchedule,
        lr: float = 2e-4,
        cycle: float = 10.0,
        identity: float = 5.0,
        pool: int = 50,
        clip: float | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(adversary, make_optimizer, make_schedule, lr, clip, seed)
        self.a_to_b, self.b_to_a = a_to_b, b_to_a
        self.judge_a, self.judge_b = judge_a, judge_b
        self.pool_a, self.pool_b = ImagePool(pool), ImagePool(pool)
        self.cycle, self.identity = cycle, identity

    @property
    def generators(self) -> list[nn.Module]:
        return [self.a_to_b, self.b_to_a]

    @property
    def discriminators(self) -> list[nn.Module]:
        return [self.judge_a, self.judge_b]

    def forward(self, a: Tensor) -> Tensor:
        return self.a_to_b(a)

    def training_step(self, batch: Mapping[str, Any], index: int) -> dict[str, Tensor]:
        a, b = batch["a"], batch["b"]
        drawing, judging = self.begin()
        like_b, like_a = self.a_to_b(a), self.b_to_a(b)

        with self.turn(drawing) as step:
            fooled = self.adversary.fool(self.judge_b(self.seen(like_b)))
            fooled = fooled + self.adversary.fool(self.judge_a(self.seen(like_a)))
            cycle = distance(self.b_to_a(like_b), a) + distance(self.a_to_b(like_a), b)
            loss = fooled + self.cycle * cycle
            identity = loss.new_zeros(())
            if self.identity:
                identity = distance(self.a_to_b(b), b) + distance(self.b_to_a(a), a)
                loss = loss + self.identity * identity
            step(loss)

        with self.turn(judging) as step:
            of_a = self._judge(self.judge_a, a, self.pool_a(like_a))
            of_b = self._judge(self.judge_b, b, self.pool_b(like_b))
            step(of_a.loss + of_b.loss)
            for judge in self.discriminators:
                self.adversary.clip_weights(judge)

        values = {"generator": loss, "fooled": fooled, "cycle": cycle, "identity": identity}
        values |= {"discriminator": of_a.loss + of_b.loss}
        values |= {"D_A(real)": of_a.real, "D_A(fake)": of_a.fake}
        return self.finish(values | {"D_B(real)": of_b.real, "D_B(fake)": of_b.fake}, len(a))

    def _judge(self, judge: nn.Module, real: Tensor, fake: Tensor) -> Judged:
        return self.adversary.judge(judge, self.seen(real), self.seen(fake))

    def validation_step(self, batch: Mapping[str, Any], index: int) -> dict[str, Tensor]:
        a, b = batch["a"], batch["b"]
        like_b, like_a = self.a_to_b(a), self.b_to_a(b)
        cycle = distance(self.b_to_a(like_b), a) + distance(self.a_to_b(like_a), b)
        identity = distance(self.a_to_b(b), b) + distance(self.b_to_a(a), a)
        self.log_dict({"val/cycle": cycle, "val/identity": identity}, batch_size=len(a))
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
