import numpy as np
import pytest
import torch
from scipy.ndimage import black_tophat, gaussian_filter, laplace, maximum_filter
from torch import Tensor

from distill.metrics.line_figures import FARTHEST, FIGURES, chamfer_sums, ink_sums, ratios


def lines(*columns: int, depth: float = 0.5, size: int = 32) -> Tensor:
    """A light picture with vertical lines one pixel wide."""
    picture = torch.full((1, 3, size, size), 0.9)
    for column in columns:
        picture[..., column] -= depth
    return picture


def figures(student: Tensor, teacher: Tensor) -> list[float]:
    """Recall, precision and depth."""
    return ratios(ink_sums(student, teacher)).flatten().tolist()[:3]


def named(student: Tensor, teacher: Tensor) -> dict[str, float]:
    found = ratios(ink_sums(student, teacher))[0].tolist()
    return dict(zip(FIGURES, found, strict=True))


def chamfer(student: Tensor, teacher: Tensor) -> float:
    return ratios(chamfer_sums(student, teacher)).item()


def grey_picture(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values.astype(np.float32)).expand(1, 3, -1, -1)


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
def test_known_drawings(student, wanted):
    teacher = lines(8, 20)
    assert figures(student, teacher) == pytest.approx(wanted, abs=1e-5, nan_ok=True)
    assert ink_sums(student, teacher)[0, 0, 1] == 2 * 32  # ink pixels of the teacher


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
    assert sums.shape == (2, len(FIGURES), 2)
    assert sums[:, 0].tolist() == [[32, 32], [0, 32]]
    assert ratios(sums.sum(0))[:3].tolist() == pytest.approx([0.5, 1, 0.5])


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


def test_a_picture_against_itself():
    found = named(lines(8, 20), lines(8, 20))
    assert found == pytest.approx(dict.fromkeys(FIGURES, 1.0))
    assert chamfer(lines(8, 20), lines(8, 20)) == 0


@pytest.mark.parametrize(("by", "distance"), [(0, 0.0), (1, 1.0), (2, 2.0), (5, 5.0)])
def test_a_line_moved_by_some_pixels(by, distance):
    """Recall forgives one pixel; the chamfer distance is how far it went."""
    found = named(lines(10 + by), lines(10))
    assert found["ink recall"] == found["ink precision"] == (1.0 if by < 2 else 0.0)
    assert found["ink mass"] == pytest.approx(1, abs=1e-5)
    assert chamfer(lines(10 + by), lines(10)) == pytest.approx(distance)


def test_recall_at_greater_depths():
    """Lines of 0.15, 0.25 and 0.5 drawn 0.1 paler: 0.05, 0.15 and 0.4."""
    student, teacher = lines(), lines()
    for column, depth in ((8, 0.15), (16, 0.25), (24, 0.5)):
        teacher[..., column] -= depth
        student[..., column] -= depth - 0.1
    found = named(student, teacher)
    assert found["ink recall"] == pytest.approx(2 / 3)
    assert found["ink recall at 0.2"] == pytest.approx(1 / 2)
    assert found["ink recall at 0.3"] == 1
    assert [found[f"ink precision{at}"] for at in ("", " at 0.2", " at 0.3")] == [1, 1, 1]
    assert found["ink mass"] == pytest.approx((0.05 + 0.15 + 0.4) / (0.15 + 0.25 + 0.5), abs=1e-5)


def test_a_line_too_many_is_a_distance_too():
    """32 + 32 pixels of a line drawn where it is, and 32 of one that is 6 pixels from it."""
    assert chamfer(lines(8, 14), lines(8)) == pytest.approx(6 / 3)
    assert chamfer(lines(8), lines()) == FARTHEST
    assert chamfer(lines(4), lines(28)) == FARTHEST
    assert np.isnan(chamfer(lines(), lines()))


def test_a_blurred_picture_has_less_of_the_teacher_s_sharpness():
    """By SciPy's Laplacian and blur."""
    sharp = np.random.default_rng(0).random((40, 33))
    blurred = gaussian_filter(sharp, 1)
    expected = np.abs(laplace(blurred)).sum() / np.abs(laplace(sharp)).sum()
    assert expected < 0.5
    found = named(grey_picture(blurred), grey_picture(sharp))
    assert found["sharpness"] == pytest.approx(expected, rel=1e-4)
