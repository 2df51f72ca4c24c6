"""Updates: each optimiser's leaves the other's networks alone, and a step is a batch."""

from contextlib import contextmanager

import pytest
import torch
from pytorch_lightning.plugins import MixedPrecision

from distill.train import schedules
from distill_gan.adversarial import Adversary
from support.tiny_gans import SIDE, cyclegan, data_for, fit, gradients, pix2pix, same, values


class Watch:
    """Notes both sides' weights and gradients around every optimiser's update."""

    def __init__(self, module):
        self.module, self.updates = module, []
        plain = module.update

        @contextmanager
        def update(optimizer):
            side = "generators" if self._of_generators(optimizer) else "discriminators"
            sides = module.generators, module.discriminators
            before = [(values(s), gradients(s)) for s in sides]
            with plain(optimizer) as step:
                yield step
                touched = [all(p.requires_grad for n in s for p in n.parameters()) for s in sides]
            after = [(values(s), gradients(s)) for s in sides]
            self.updates.append((side, before, after, touched))

        module.update = update

    def _of_generators(self, optimizer):
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
def test_each_optimiser_s_update_leaves_the_other_s_networks_alone(make, adversary):
    module = make(adversary)
    watch = Watch(module)
    fit(module, 3)
    assert len(watch.updates) == 6
    assert {side for side, *_ in watch.updates} == {"generators", "discriminators"}
    for side, before, after, touched in watch.updates:
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
        output, discriminator = module.generator(photo), module.discriminator
        on_fake = torch.sigmoid(discriminator(torch.cat([photo, output], 1)))
        if optimizer.param_groups[0]["params"][0] is module.generator.layer.weight:
            loss = -on_fake.log().mean() + 100 * (2 * output - 2 * target).abs().mean()
            side = module.generator
        else:
            on_real = torch.sigmoid(discriminator(torch.cat([photo, target], 1)))
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
    assert checked == ["TinyDiscriminator", "TinyGenerator"]


def test_cyclegan_s_grid_counts_between_a_translation_and_its_photo():
    module = cyclegan(identity=0.0, pool=0, phases=100.0)
    data = data_for(module)
    row = data.train[0]
    a, b = (data.on_after_batch_transfer({k: row[k][None]}, 0)[k] for k in "ab")
    with torch.no_grad():
        grid = 0.0
        for network, picture in ((module.a_to_b, a), (module.b_to_a, b)):
            error = (network(picture) - picture)[0]
            means = torch.stack([error[:, i::2, j::2].mean((1, 2)) for i in (0, 1) for j in (0, 1)])
            grid += (means - means.mean(0)).abs().mean().item()
    logged = fit(module, 1).logged_metrics
    assert logged["train/phases"] == pytest.approx(grid, rel=1e-5)
    rest = logged["train/fooled"] + 10 * logged["train/cycle"]
    assert logged["train/generator"] == pytest.approx((rest + 100 * grid).item(), rel=1e-5)


def test_cyclegan_s_gradients_are_those_of_its_losses():
    """Against autograd on the losses as the paper writes them, each discriminator's halved."""
    module = cyclegan(Adversary("lsgan", real=(1.0, 1.0)), cycle=10.0, identity=5.0, pool=0)
    checked, fakes, terms = [], [], {}
    g, f, judge_a, judge_b = module.a_to_b, module.b_to_a, module.judge_a, module.judge_b

    def on_step(optimizer):
        batch = data.on_after_batch_transfer({k: v[None] for k, v in row.items() if k != "name"}, 0)
        a, b = batch["a"], batch["b"]
        if optimizer.param_groups[0]["params"][0] is g.layer.weight:
            fake_b, fake_a = g(a), f(b)
            loss = (judge_b(fake_b) - 1).square().mean() + (judge_a(fake_a) - 1).square().mean()
            # Of pictures in [-1, 1], as the paper has them: twice the difference in [0, 1].
            cycle = 2 * ((f(fake_b) - a).abs().mean() + (g(fake_a) - b).abs().mean())
            identity = 2 * ((g(b) - b).abs().mean() + (f(a) - a).abs().mean())
            loss = loss + 10 * cycle + 5 * identity
            terms.update(generator=loss.item(), cycle=cycle.item(), identity=identity.item())
            fakes.extend([fake_a.detach(), fake_b.detach()])
            side = module.generators
        else:  # on fakes of before the generators' step
            loss = 0.5 * ((judge_a(a) - 1).square().mean() + judge_a(fakes[0]).square().mean())
            loss = loss + 0.5 * (judge_b(b) - 1).square().mean()
            loss = loss + 0.5 * judge_b(fakes[1]).square().mean()
            side = module.discriminators
        learning = [p for network in side for p in network.parameters()]
        for value, gradient in zip(learning, torch.autograd.grad(loss, learning), strict=True):
            torch.testing.assert_close(value.grad, gradient)
        checked.append(type(side[0]).__name__)

    data = data_for(module)
    row = data.train[0]
    module.on_before_optimizer_step = on_step
    a, b = (data.on_after_batch_transfer({k: row[k][None]}, 0)[k] for k in "ab")
    with torch.no_grad():
        logits = {"A(real)": judge_a(a), "A(fake)": judge_a(f(b))}
        logits |= {"B(real)": judge_b(b), "B(fake)": judge_b(g(a))}
    logged = fit(module, 1).logged_metrics
    assert checked == ["TinyGenerator", "TinyDiscriminator"]
    terms |= {f"D_{name}": each.mean().item() for name, each in logits.items()}
    for name, value in terms.items():
        assert logged[f"train/{name}"] == pytest.approx(value, rel=1e-5)


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
        return schedules.linear(optimizer, total, every, epochs=1, decay_epochs=1)

    rates = []
    module = make(schedule=linear, lr=1.0)
    module.on_before_optimizer_step = lambda o: rates.append(o.param_groups[0]["lr"])
    fit(module, 4)
    assert rates == pytest.approx([1, 1, 1, 1, 1, 1, 0.5, 0.5])


@pytest.mark.parametrize("precision", ["32-true", "16-mixed", "bf16-mixed"])
def test_clipping_bounds_each_update_s_gradient(precision):
    """Fused as with trainer.fused=true, but where the loss is scaled: there settings refuse it."""
    norms = []

    class Noting(torch.optim.Adam):
        def step(self, *args, **kwargs):
            super().step(*args, **kwargs)  # runs Lightning's closure, which clips
            grads = [p.grad.flatten() for group in self.param_groups for p in group["params"]]
            norms.append(torch.cat(grads).norm().item())

    scaled = precision == "16-mixed"
    module = pix2pix(clip=0.001)
    module.make_optimizer = lambda values, lr: Noting(values, lr, fused=not scaled)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0) if scaled else None
    mixed = [] if precision == "32-true" else [MixedPrecision(precision, "cpu", scaler)]
    fit(module, 2, plugins=mixed)
    assert norms == pytest.approx([0.001] * 4, rel=1e-2)


@pytest.mark.parametrize("make", [pix2pix, cyclegan])
def test_clipped_critics_stay_within_their_bound(make):
    module = make(Adversary("wasserstein", share=1.0, clip=0.001))
    fit(module, 2)
    assert max(p.abs().max().item() for p in values(module.discriminators)) < 0.00101


@pytest.mark.parametrize("make", [pix2pix, cyclegan])
def test_every_input_of_a_discriminator_is_noisy(make):
    module, shown = make(), []
    module.with_noise = lambda picture: 0 * picture + 0.25
    for discriminator in module.discriminators:
        discriminator.register_forward_pre_hook(lambda _, given: shown.append(given[0]))
    fit(module, 1)
    assert len(shown) == 3 * len(module.discriminators)  # once for the generator
    assert all((picture == 0.25).all() for picture in shown)


def test_the_pools_keep_earlier_fakes_of_their_own_domain():
    module = cyclegan(pool=2)
    fakes = {"a": [], "b": []}
    module.b_to_a.register_forward_hook(lambda *args: fakes["a"].append(args[-1].detach()))
    module.a_to_b.register_forward_hook(lambda *args: fakes["b"].append(args[-1].detach()))
    fit(module, 6)
    for domain, pool in (("a", module.pool_a), ("b", module.pool_b)):
        assert pool.pictures.shape == (2, 3, SIDE, SIDE)
        for kept in pool.pictures:
            assert any(torch.equal(kept, picture[0]) for picture in fakes[domain])


def test_noise_anneals_with_the_epochs():
    module = pix2pix(Adversary("bce", noise=0.5, noise_epochs=1.0))
    seen = []
    plain = module.with_noise

    def watch(picture):
        shown = plain(picture)
        seen.append((shown - picture).std().item())
        return shown

    module.with_noise = watch
    fit(module, 8)  # a pass is 6 batches
    real = seen[::2]
    assert real[:6] == pytest.approx([0.5 * (1 - i / 6) for i in range(6)], rel=0.15)
    assert real[6:] == [0, 0]


def test_every_step_has_random_numbers_of_its_own_from_the_seed():
    numbers = {}
    for name, seed in (("once", 0), ("again", 0), ("other", 1)):
        module, found = pix2pix(seed=seed), numbers.setdefault(name, [])
        module.with_noise = lambda picture, to=found: to.append(torch.rand(()).item()) or picture
        fit(module, 3)
    assert len(set(numbers["once"])) == 6
    assert numbers["once"] == numbers["again"]
    assert not set(numbers["once"]) & set(numbers["other"])


def test_what_a_validation_gives_is_named_by_what_it_shows():
    module = cyclegan()
    module.log_dict = lambda *args, **kwargs: None
    a, b = torch.rand(2, 1, 3, SIDE, SIDE)
    with torch.no_grad():
        given = module.validation_step({"a": a, "b": b}, 0)
        shown = module.preview({"a": a, "b": b})
        g, f = module.a_to_b, module.b_to_a
        assert same([given[k] for k in ("a", "to_b", "b", "to_a")], [a, g(a), b, f(b)])
        sheet = {"A": a, "A to B": g(a), "to A again": f(g(a)), "A to A": f(a)}
        sheet |= {"B": b, "B to A": f(b), "to B again": g(f(b)), "B to B": g(b)}
    assert list(shown) == list(sheet)
    assert same(shown.values(), sheet.values())
