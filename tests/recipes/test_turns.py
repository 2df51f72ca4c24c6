"""Whose turn it is: each side's step leaves the other alone, and a step is a batch."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch

from adversaries import cyclegan, data_for, fit, gradients, pix2pix, same, values
from distill import optimisation
from distill.losses.adversarial import Adversary


class Watch:
    """Notes both sides' weights and gradients around every optimiser's step."""

    def __init__(self, module):
        self.module, self.turns = module, []
        plain = module.turn

        @contextmanager
        def turn(optimizer):
            side = "generators" if self._draws(optimizer) else "discriminators"
            sides = module.generators, module.discriminators
            before = [(values(s), gradients(s)) for s in sides]
            with plain(optimizer) as step:
                yield step
                touched = [all(p.requires_grad for n in s for p in n.parameters()) for s in sides]
            after = [(values(s), gradients(s)) for s in sides]
            self.turns.append((side, before, after, touched))

        module.turn = turn

    def _draws(self, optimizer):
        first = next(self.module.generators[0].parameters())
        return optimizer.param_groups[0]["params"][0] is first


@pytest.mark.parametrize("make", [pix2pix, cyclegan])
@pytest.mark.parametrize(
    "adversary",
    [
        Adversary("bce", noise=0.1),
        Adversary("lsgan"),
        Adversary("wasserstein", share=1.0, penalty=10.0),
        Adversary("wasserstein", share=1.0, clip=0.01),
    ],
    ids=["bce", "lsgan", "penalty", "clip"],
)
def test_each_side_s_step_leaves_the_other_alone(make, adversary):
    module = make(adversary)
    watch = Watch(module)
    fit(module, 3)
    assert len(watch.turns) == 6
    assert {side for side, *_ in watch.turns} == {"generators", "discriminators"}
    for side, before, after, touched in watch.turns:
        mine, other = (0, 1) if side == "generators" else (1, 0)
        assert not same(before[mine][0], after[mine][0])  # its weights moved
        assert same(before[other][0], after[other][0])  # the other's did not,
        assert same(before[other][1], after[other][1])  # nor got a gradient
        assert touched[mine]
        assert not touched[other]
    assert all(p.requires_grad for p in module.parameters())


def test_pix2pix_s_gradients_are_those_of_its_losses():
    """Against autograd on the losses as the paper writes them, with labels of one value."""
    module = pix2pix(Adversary("bce", real=(1.0, 1.0)), l1=100.0)
    checked = []

    def on_step(optimizer):
        batch = data.on_after_batch_transfer({k: v[None] for k, v in row.items() if k != "name"}, 0)
        photo, target = batch["photo"], batch["target"]
        drawn, judge = module.generator(photo), module.discriminator
        on_fake = torch.sigmoid(judge(torch.cat([photo, drawn], 1)))
        if optimizer.param_groups[0]["params"][0] is module.generator.layer.weight:
            loss = -on_fake.log().mean() + 100 * (2 * drawn - 2 * target).abs().mean()
            side = module.generator
        else:
            on_real = torch.sigmoid(judge(torch.cat([photo, target], 1)))
            loss = -0.5 * (on_real.log().mean() + (1 - on_fake).log().mean())
            side = module.discriminator
        expected = torch.autograd.grad(loss, list(side.parameters()))
        for value, gradient in zip(side.parameters(), expected, strict=True):
            torch.testing.assert_close(value.grad, gradient)
        checked.append(type(side).__name__)

    data = data_for(module)
    row = data.train[0]
    module.on_before_optimizer_step = on_step
    fit(module, 1)
    assert checked == ["Judges", "Draws"]


def test_cyclegan_s_loss_is_the_paper_s():
    module = cyclegan(Adversary("lsgan", real=(1.0, 1.0)), cycle=10.0, identity=5.0, pool=0)
    data = data_for(module)
    row = data.train[0]
    batch = data.on_after_batch_transfer({k: v[None] for k, v in row.items() if k != "name"}, 0)
    a, b = (2 * batch[k] - 1 for k in "ab")  # as the paper has them
    g, f, judge_a, judge_b = module.a_to_b, module.b_to_a, module.judge_a, module.judge_b

    def to(network, picture):
        return 2 * network((picture + 1) / 2) - 1

    with torch.no_grad():
        fake_b, fake_a = to(g, a), to(f, b)
        opinions = judge_b((fake_b + 1) / 2), judge_a((fake_a + 1) / 2)
        fooled = sum((o - 1).square().mean() for o in opinions)
        cycle = (to(f, fake_b) - a).abs().mean() + (to(g, fake_a) - b).abs().mean()
        identity = (to(g, b) - b).abs().mean() + (to(f, a) - a).abs().mean()
        expected = fooled + 10 * cycle + 5 * identity
    trainer = fit(module, 1)
    logged = trainer.logged_metrics
    assert logged["train/generator"] == pytest.approx(expected.item(), rel=1e-5)
    assert logged["train/cycle"] == pytest.approx(cycle.item(), rel=1e-5)
    assert logged["train/identity"] == pytest.approx(identity.item(), rel=1e-5)


@pytest.mark.parametrize("make", [pix2pix, cyclegan])
def test_a_step_is_a_batch(make):
    seen = []
    module = make()
    plain = module.training_step

    def step(batch, batch_idx):
        seen.append(batch["name"][0])
        return plain(batch, batch_idx)

    module.training_step = step
    trainer = fit(module, 5)
    assert trainer.global_step == 5
    assert seen == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("make", [pix2pix, cyclegan])
def test_both_optimisers_follow_the_schedule(make):
    def linear(optimizer, total, every):
        return optimisation.linear(optimizer, total, every, epochs=1, decay_epochs=1)

    rates = []
    module = make(schedule=linear, lr=1.0)
    module.on_before_optimizer_step = lambda o: rates.append(o.param_groups[0]["lr"])
    fit(module, 4)
    assert rates == pytest.approx([1, 1, 1, 1, 1, 1, 0.5, 0.5])


def test_clipping_bounds_each_turn_s_gradient():
    norms = []
    module = pix2pix(clip=0.001)
    plain = module.clip_gradients

    def clip(optimizer, *args):
        plain(optimizer, *args)
        grads = [p.grad.flatten() for group in optimizer.param_groups for p in group["params"]]
        norms.append(torch.cat(grads).norm().item())

    module.clip_gradients = clip
    fit(module, 2)
    assert norms == pytest.approx([0.001] * 4, rel=1e-3)


def test_the_pool_shows_the_judges_earlier_fakes():
    module = cyclegan(pool=2)
    fit(module, 6)
    assert module.pool_a.pictures.shape == module.pool_b.pictures.shape == (2, 3, 8, 8)


def test_noise_anneals_with_the_epochs():
    module = pix2pix(Adversary("bce", noise=0.5, noise_epochs=1.0))
    seen = []
    plain = module.seen

    def watch(picture):
        shown = plain(picture)
        seen.append((shown - picture).std().item())
        return shown

    module.seen = watch
    fit(module, 8)  # a pass is 6 batches
    real = seen[::2]
    assert real[:6] == pytest.approx([0.5 * (1 - i / 6) for i in range(6)], rel=0.15)
    assert real[6:] == [0, 0]
