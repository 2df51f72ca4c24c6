from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.ndimage import black_tophat, maximum_filter
from torch import Tensor

from distill.metrics.ink_figures import FIGURES, ink_sums, ratios


def lines(*columns: int, depth: float = 0.5, size: int = 32) -> Tensor:
    """A light picture with vertical lines one pixel wide."""
    picture = torch.full((1, 3, size, size), 0.9)
    for column in columns:
        picture[..., column] -= depth
    return picture


def figures(student: Tensor, teacher: Tensor) -> list[float]:
    return ratios(ink_sums(student, teacher)).flatten().tolist()


@pytest.mark.parametrize(
    ("student", "wanted"),
    [
        (lines(8, 20), (1, 1, 1)),
        (lines(9, 20), (1, 1, 1)),  # a pixel off
        (lines(10, 20), (0.5, 0.5, 0.5)),  # two pixels off
        (lines(8), (0.5, 1, 0.5)),
        (lines(8, 20, 26), (1, 2 / 3, 1)),
        (lines(8, 20, depth=0.2), (1, 1, 0.4)),  # faint
        (lines(8, 20, depth=0.8), (1, 1, 1)),  # no more than the teacher's
        (lines(8, 20, depth=0.05), (0, float("nan"), 0.1)),  # too faint to be ink
    ],
)
def test_known_drawings(student: Tensor, wanted: tuple[float, float, float]):
    teacher = lines(8, 20)
    assert figures(student, teacher) == pytest.approx(wanted, abs=1e-5, nan_ok=True)
    assert ink_sums(student, teacher)[0, 0, 1] == 2 * 32  # ink pixels of the teacher
    assert len(FIGURES) == 3


def test_without_ink_there_is_no_figure():
    flat = lines()
    assert np.isnan(figures(flat, flat)).all()
    recall, precision, depth = figures(lines(8), flat)
    assert np.isnan([recall, depth]).all()
    assert precision == 0


def test_colour_counts_by_its_luma():
    """A blue line on grey is 0.5 × 0.114 dark: no ink; a green one 0.5 × 0.587."""
    for channel, share in ((0, 0.299), (1, 0.587), (2, 0.114)):
        picture = torch.full((1, 3, 16, 16), 0.9)
        picture[:, channel, :, 8] -= 0.5
        expected = 16 if 0.5 * share > 0.1 else 0
        assert ink_sums(picture, picture)[0, 0, 1] == expected


def test_each_picture_has_its_own_sums():
    both = torch.cat([lines(8), lines()])
    sums = ink_sums(both, torch.cat([lines(8), lines(8)]))
    assert sums.shape == (2, 3, 2)
    assert sums[:, 0].tolist() == [[32, 32], [0, 32]]
    assert ratios(sums.sum(0)).tolist() == pytest.approx([0.5, 1, 0.5])


def test_against_scipy():
    """The same by SciPy's morphology, on two unlike textures."""
    rng = np.random.default_rng(0)
    a, b = (rng.random((3, 40, 33)).astype(np.float32) for _ in range(2))
    hats = [black_tophat(np.tensordot([0.299, 0.587, 0.114], x, 1), size=5) for x in (a, b)]
    (s, t), (near_s, near_t) = hats, [maximum_filter(hat, 3) for hat in hats]
    student, teacher = s > 0.1, t > 0.1
    expected = [
        (near_s > 0.1)[teacher].mean(),
        (near_t > 0.1)[student].mean(),
        np.minimum(near_s, t)[teacher].sum() / t[teacher].sum(),
    ]
    got = figures(torch.from_numpy(a)[None], torch.from_numpy(b)[None])
    assert got == pytest.approx(expected, abs=1e-5)
