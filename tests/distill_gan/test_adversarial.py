import math

import pytest
import torch
from torch import nn

from distill.core.errors import DistillError
from distill_gan.adversarial import Adversary, distance, gradient_penalty, smoothed


class Fixed(nn.Module):
    """A discriminator whose logit is the first pixel."""

    def forward(self, picture):
        return picture[:, :1, :1, :1]


def of(value):
    return torch.full((2, 3, 4, 4), value)


PLAIN = {"real": (1.0, 1.0), "fake": (0.0, 0.0), "share": 0.5}


def test_cross_entropy_by_hand():
    found = Adversary("bce", **PLAIN).discriminator_loss(Fixed(), of(2.0), of(-1.0))
    by_hand = math.log(1 + math.exp(-2)) + math.log(1 + math.exp(-1))
    assert found.loss.item() == pytest.approx(0.5 * by_hand, rel=1e-6)
    assert found.real.item() == pytest.approx(1 / (1 + math.exp(-2)))
    assert found.fake.item() == pytest.approx(1 / (1 + math.exp(1)))
    of_fakes = Adversary("bce").generator_loss(torch.tensor([[-1.0]]))
    assert of_fakes.item() == pytest.approx(math.log(1 + math.e), rel=1e-6)


def test_least_squares_by_hand():
    found = Adversary("lsgan", **PLAIN).discriminator_loss(Fixed(), of(0.7), of(0.4))
    assert found.loss.item() == pytest.approx(0.5 * (0.3**2 + 0.4**2), rel=1e-5)
    assert found.real.item() == pytest.approx(0.7)
    assert Adversary("lsgan").generator_loss(torch.tensor([0.4])).item() == pytest.approx(0.36)


def test_wasserstein_by_hand():
    adversary = Adversary("wasserstein", share=1.0, clip=0.01)
    assert adversary.discriminator_loss(Fixed(), of(3.0), of(1.0)).loss.item() == pytest.approx(
        -2.0
    )
    assert adversary.generator_loss(torch.tensor([3.0])).item() == pytest.approx(-3.0)


def test_labels_are_uniform_in_their_range():
    labels = smoothed(torch.empty(200_000), (0.7, 1.0))
    assert 0.7 <= labels.min() < 0.701
    assert 0.999 < labels.max() <= 1.0
    assert labels.mean().item() == pytest.approx(0.85, abs=1e-3)
    assert labels.std().item() == pytest.approx(0.3 / math.sqrt(12), abs=1e-3)
    assert torch.equal(smoothed(torch.empty(3), (0.0, 0.0)), torch.zeros(3))
    assert 1.19 < smoothed(torch.empty(20_000), (0.7, 1.2)).max() <= 1.2  # beyond 1 as well


def test_only_the_discriminator_s_labels_are_smoothed():
    # Ranges of a single value, so that the labels can be read off the loss.
    adversary = Adversary("lsgan", real=(0.8, 0.8), fake=(0.3, 0.3), share=1.0)
    assert adversary.discriminator_loss(Fixed(), of(0.0), of(0.0)).loss.item() == pytest.approx(
        0.8**2 + 0.3**2
    )
    assert adversary.generator_loss(torch.zeros(1)).item() == pytest.approx(1.0)


def test_every_patch_has_a_smoothed_label_of_its_own():
    class Patches(nn.Module):
        def forward(self, picture):
            return torch.zeros(len(picture), 1, 500, 500)

    # E[(u)²] of u uniform in [0.8, 1] is (1 − 0.8³) / 0.6
    loss = Adversary("lsgan", share=1.0).discriminator_loss(Patches(), of(0.0), of(0.0)).loss
    assert loss.item() == pytest.approx((1 - 0.8**3) / 0.6, rel=1e-3)


def test_the_discriminator_s_loss_reaches_neither_picture():
    real, fake = of(0.1).requires_grad_(), of(0.2).requires_grad_()
    critic = nn.Conv2d(3, 1, 4)
    Adversary("bce").discriminator_loss(critic, real, fake).loss.backward()
    assert real.grad is None
    assert fake.grad is None
    assert critic.weight.grad.abs().sum() > 0


def test_noise_falls_in_a_straight_line():
    adversary = Adversary(noise=0.2, noise_epochs=100)
    assert [adversary.noise_at(e) for e in (0, 25, 50, 100, 150)] == pytest.approx(
        [0.2, 0.15, 0.1, 0.0, 0.0]
    )
    assert Adversary().noise_at(0) == 0


class Linear(nn.Module):
    """A critic with one gradient everywhere: (∂/∂[-1, 1]) of norm `slope`."""

    def __init__(self, slope, count):
        super().__init__()
        self.weight = nn.Parameter(torch.full((count,), slope / math.sqrt(count)))

    def forward(self, picture):
        return ((2 * picture - 1).flatten(1) * self.weight).sum(1)


@pytest.mark.parametrize("slope", [0.0, 1.0, 3.0])
def test_gradient_penalty_of_a_known_slope(slope):
    critic = Linear(slope, 3 * 4 * 4)
    penalty = gradient_penalty(critic, torch.rand(2, 3, 4, 4), torch.rand(2, 3, 4, 4))
    assert penalty.item() == pytest.approx((slope - 1) ** 2, abs=1e-5)


def test_gradient_penalty_of_fakes_of_half_precision():
    penalty = gradient_penalty(Linear(3.0, 48), of(0.25), of(0.75).bfloat16())
    assert penalty.item() == pytest.approx(4, rel=1e-5)


def test_gradient_penalty_moves_the_critic_and_is_weighed():
    adversary = Adversary("wasserstein", share=1.0, penalty=10.0)
    critic = Linear(3.0, 48)
    same = torch.rand(2, 3, 4, 4)
    loss = adversary.discriminator_loss(critic, same, same).loss
    assert loss.item() == pytest.approx(10 * 4, rel=1e-5)  # both means are the same
    loss.backward()
    assert critic.weight.grad.abs().sum() > 0


def test_distance_is_that_of_the_papers_range():
    assert distance(of(0.25), of(0.75)).item() == pytest.approx(1.0)


WRONG = [
    ({"kind": "hinge"}, "adversarial.kind=hinge: choose from"),
    ({"real": (1.0, 0.8)}, r"adversarial.real=\[1.0, 0.8\]: want two values"),
    ({"fake": (0.0,)}, r"adversarial.fake=\[0.0\]: want two values"),
    ({"noise": -1.0}, "adversarial.noise=-1.0"),
    ({"noise": float("nan")}, "adversarial.noise=nan"),
    ({"kind": "wasserstein"}, "a critic needs one bound"),
    ({"kind": "wasserstein", "penalty": 10.0, "clip": 0.1}, "a critic needs one bound"),
    ({"penalty": 10.0}, "penalty and clip bound a critic"),
    ({"clip": 0.1}, "penalty and clip bound a critic"),
]


@pytest.mark.parametrize(("given", "line"), WRONG)
def test_rules_that_do_not_go_together(given, line):
    with pytest.raises(DistillError, match=line):
        Adversary(**given)


def test_clipped_weights_lie_within_the_bound_on_both_sides():
    critic = nn.Linear(4, 1, bias=False)
    with torch.no_grad():
        critic.weight.copy_(torch.tensor([[-0.5, -0.005, 0.005, 0.5]]))
    Adversary("wasserstein", clip=0.01).clip_weights(critic)
    assert critic.weight.tolist() == [pytest.approx([-0.01, -0.005, 0.005, 0.01])]


def test_the_penalty_looks_between_each_picture_and_its_fake_at_a_place_of_its_own():
    seen = []

    def critic(picture):
        seen.append(picture.detach())
        return picture.flatten(1).sum(1)

    gradient_penalty(critic, torch.ones(5, 3, 4, 4), torch.zeros(5, 3, 4, 4))
    (between,) = seen
    places = between.flatten(1)
    assert (places == places[:, :1]).all()  # of all pixels the same
    assert len(set(places[:, 0].tolist())) == 5
    assert 0 <= places.min() < places.max() <= 1
