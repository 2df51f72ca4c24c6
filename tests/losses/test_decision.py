"""Losses on decisions, against closed forms."""

import math

import pytest
import torch

from distill.losses.decision import Decision, cross_entropy, soft_dice


def one_hot(rows):
    return torch.nn.functional.one_hot(torch.tensor(rows), 2).movedim(-1, 0)[None].float()


def test_equal_logits_cost_the_logarithm_of_the_classes():
    shares = torch.softmax(torch.randn(2, 5, 4, 4), 1)
    assert cross_entropy(torch.zeros(2, 5, 4, 4), shares).item() == pytest.approx(math.log(5))


def test_it_is_torchs_own_for_classes():
    logits, classes = torch.randn(2, 4, 6, 6), torch.randint(4, (2, 6, 6))
    shares = torch.nn.functional.one_hot(classes, 4).movedim(-1, 1).float()
    expected = torch.nn.functional.cross_entropy(logits, classes)
    torch.testing.assert_close(cross_entropy(logits, shares), expected)


def test_pixels_beside_another_class_count_more():
    shares = one_hot([[0, 0, 0, 0, 1, 1, 1, 1]] * 3)  # columns 3 and 4 are the border
    uniform = torch.zeros(1, 2, 3, 8)
    assert cross_entropy(uniform, shares, borders=4).item() == pytest.approx(
        math.log(2) * (1 + 4 * 2 / 8)
    )


def test_dice_is_0_for_the_same_and_nearly_1_for_none():
    share = torch.zeros(1, 32, 32)
    share[:, 8] = 1
    assert soft_dice(share, share).item() == pytest.approx(0)
    assert soft_dice(torch.zeros_like(share), share).item() == pytest.approx(1 - 1 / 33)


def test_dice_is_of_the_rarest_class():
    shares = one_hot([[0, 0, 0, 1]] * 4)
    right = 40 * (2 * shares - 1)
    missed = right.clone()
    missed[:, :, :, 3] = torch.tensor([40.0, -40.0]).view(1, 2, 1)
    term = Decision(dice=1.0)
    assert term(right, shares).item() == pytest.approx(0, abs=1e-6)
    assert (term(missed, shares) - Decision()(missed, shares)).item() == pytest.approx(1 - 1 / 5)


def test_the_gradient_leads_to_the_targets_classes():
    shares = one_hot([[0, 1], [1, 0]])
    logits = torch.zeros(1, 2, 2, 2, requires_grad=True)
    Decision(borders=2, dice=0.5)(logits, shares).backward()
    assert ((logits.grad < 0) == (shares > 0)).all()
