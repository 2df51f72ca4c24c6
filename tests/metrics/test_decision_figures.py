"""Lines that hold together, border widths and inks, of pictures whose figures are known."""

import pytest
import torch

from distill.metrics.decision_figures import (
    DECIDED,
    ClassAgreement,
    FlatShare,
    decision_sums,
    metrics_of_head,
)
from distill.metrics.metric import user_metrics


def figures(student, teacher):
    sums = decision_sums(student, teacher)[0]
    return dict(zip(DECIDED, (sums[:, 0] / sums[:, 1]).tolist(), strict=True))


def lines(*rows, gaps=()):
    picture = torch.ones(1, 3, 40, 64)
    for row in rows:
        picture[..., row : row + 2, 4:60] = 0
    for column in gaps:
        picture[..., column : column + 4] = 1
    return picture


def test_the_same_picture_is_perfect():
    found = figures(lines(8, 24), lines(8, 24))
    assert all(value == 1 for value in found.values())


def test_a_missing_line_halves_recall_and_a_line_too_many_precision():
    assert figures(lines(8), lines(8, 24))["line recall"] == pytest.approx(0.5)
    assert figures(lines(8, 24), lines(8))["line precision"] == pytest.approx(0.5)


def test_a_broken_line_has_more_pieces():
    assert figures(lines(8, gaps=(20, 40)), lines(8))["line pieces"] == 3


def test_specks_are_no_pieces():
    speckled = lines(8)
    speckled[..., 30, 30] = 0
    assert figures(speckled, lines(8))["line pieces"] == 1


def test_a_border_of_three_pixels_is_wider_than_one_of_one():
    hard, soft = torch.zeros(1, 3, 32, 32), torch.zeros(1, 3, 32, 32)
    hard[..., 16:] = 1
    soft[..., 15], soft[..., 16], soft[..., 17:] = 0.25, 0.75, 1
    # Sobel's steepest slope: half the span over two pixels, and here the same over .75 of it.
    assert figures(soft, hard)["edge width"] == pytest.approx(0.5 / 0.375, rel=1e-3)


def test_flat_is_the_share_within_20_levels_of_an_ink():
    teacher, student = torch.zeros(1, 3, 8, 8), torch.zeros(1, 3, 8, 8)
    student[..., 4:] = 0.3
    assert FlatShare(["#000000", "#ffffff"])(student, teacher).tolist() == [0.5]
    # .3 is still nearest to black, and nothing is nearest to white.
    assert ClassAgreement(["#000000", "#ffffff"])(student, teacher).tolist() == [1.0]


def test_class_agreement_is_the_mean_intersection_over_union():
    teacher, student = torch.zeros(2, 3, 4, 8), torch.zeros(2, 3, 4, 8)
    teacher[0, ..., 4:] = 1
    student[0, ..., 6:] = 1
    # black: 16 of 24, white: 8 of 16; red is in neither. The second pair is all black.
    found = ClassAgreement(["#000000", "#ffffff", "#ff0000"])(student, teacher)
    assert found.tolist() == pytest.approx([(16 / 24 + 0.5) / 2, 1.0])


def test_they_are_metrics_of_a_run_by_its_palette():
    nodes = metrics_of_head({"_target_": "any", "inks": ["#000000", "#ffffff"]})
    measures = user_metrics(nodes)
    photo = torch.rand(2, 3, 16, 16)
    assert [measure(photo, photo).tolist() for measure in measures.values()] == [[1, 1], [1, 1]]
    assert metrics_of_head(None) == metrics_of_head({"_target_": "any", "ink": "#000000"}) == {}
