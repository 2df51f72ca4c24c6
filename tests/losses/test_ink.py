import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import ndimage

from distill.losses.ink import InkWeighted, Lowest, line_weights

PAPER = 0.9


def page(*columns: int, depth: float = 0.5, side: int = 20) -> torch.Tensor:
    """(1, 3, side, side) paper with dark columns across all of its height."""
    picture = torch.full((1, 3, side, side), PAPER)
    picture[..., list(columns)] -= depth
    return picture


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_a_line_weighs_its_depth_and_a_pixel_around_it_too(width):
    columns = range(8, 8 + width)
    weights = line_weights(page(*columns, depth=0.25))
    wanted = torch.zeros(20)
    wanted[7 : 9 + width] = 0.25
    torch.testing.assert_close(weights, wanted.expand(1, 1, 20, 20))


def test_an_edge_and_what_is_wider_than_the_square_are_no_lines():
    assert line_weights(page(*range(10))).max().item() == 0
    assert line_weights(page(*range(7, 12))).max().item() == 0


def test_weights_against_scipy():
    noise = torch.rand(1, 3, 24, 31)
    grey = np.tensordot([0.299, 0.587, 0.114], noise[0].numpy(), 1)
    wanted = ndimage.maximum_filter(ndimage.black_tophat(grey, size=5), 3)
    np.testing.assert_allclose(line_weights(noise)[0, 0].numpy(), wanted, atol=1e-5)


def test_a_missing_line_costs_its_depth_squared_a_shifted_one_as_much_again():
    """A line of depth 0.5 in one of 20 columns; its weight covers 3 of them."""
    term, drawn = InkWeighted(), page(9)
    assert term(page(), drawn).item() == pytest.approx(0.5 * 0.5 / 20)
    assert term(page(10), drawn).item() == pytest.approx(2 * 0.5 * 0.5 / 20)
    # Ink where there should be none, away from lines, is for the other terms.
    assert term(page(9, 15), drawn).item() == 0
    assert term(drawn.clone(), drawn).item() == 0


def test_the_gradient_is_the_weight_s():
    drawn = page(9)
    student = torch.rand(1, 3, 20, 20).requires_grad_()
    InkWeighted()(student, drawn).backward()
    sign = torch.sign(student.detach() - drawn)
    torch.testing.assert_close(student.grad, sign * line_weights(drawn) / student.numel())


def test_too_pale_counts_more_than_too_dark():
    """A line of depth 0.4 in one of 20 columns, drawn at half its depth, and half as deep again."""
    drawn, term = page(9, depth=0.4), InkWeighted(pale=0.75)
    assert term(page(9, depth=0.2), drawn).item() == pytest.approx(1.75 * 0.4 * 0.2 / 20)
    assert term(page(9, depth=0.6), drawn).item() == pytest.approx(0.4 * 0.2 / 20)


def test_what_is_pooled_does_not_mind_where_the_line_is():
    """The minima differ where one line's square reaches and the other's does not."""
    drawn = page(9)
    pooled = InkWeighted(pooled=1.0)(page(10), drawn) - InkWeighted()(page(10), drawn)
    # Of 20 columns weighing 0.5 from 7 to 11: two differ in 3×3 (8, 11), one of two in 5×5 (7).
    assert pooled.item() == pytest.approx(0.5 * 0.5 * (2 + 1) / 20)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_the_lowest_of_3_by_3_against_max_pooling(layout):
    values = torch.rand(2, 3, 17, 23, dtype=torch.double).to(memory_format=layout)
    weights = torch.rand(2, 3, 17, 23, dtype=torch.double)
    found, wanted = values.clone().requires_grad_(), values.clone().requires_grad_()
    lowest = Lowest.apply(found)
    reference = -F.max_pool2d(-wanted, 3, stride=1, padding=1)
    torch.testing.assert_close(lowest, reference)
    for each, leaf in ((lowest, found), (reference, wanted)):
        (each * weights).sum().backward()
        assert leaf.grad is not None
    torch.testing.assert_close(found.grad, wanted.grad)
