"""Scores against limits, and the figures that are judged."""

import numpy as np
import pytest
import torch

from distill.config import compose
from distill.data.faces import Box, Face
from distill.data.split import NO_EDGES
from distill_curate import pair_scores
from distill_curate.pair_scores import moved
from distill_curate.settings import Curate
from distill_curate.style_change import BLOCK, StyleChange, distances, folded
from distill_curate.verdicts import verdicts
from support.small_vgg import small_vgg
from support.textures import texture


def limits(*typed):
    return compose.load("curate", [*typed], Curate).limits


def row(**figures):
    made = np.zeros(1, pair_scores.SCORES)
    made["readable"], made["agreement"], made["difference"] = True, 0.9, 30
    made["landmarks"] = made["change"] = np.nan
    for name, value in figures.items():
        made[name] = value
    return made


FREELY = "another picture, or far from the photo"


@pytest.mark.parametrize(
    ("figures", "reasons"),
    [
        ({}, []),
        ({"agreement": 0.11, "difference": 2.1, "right": 1.4, "shifted": True}, []),
        ({"agreement": 0.09}, [FREELY]),
        ({"agreement": 0.09, "fits": True}, []),  # a style that keeps little of the photo
        ({"down": 3}, []),  # lines that are wide, or beside their edges
        ({"down": 1.6, "shifted": True}, ["lies 1.6 px off"]),
        ({"difference": 1.9}, ["the target is the photo itself"]),
        ({"landmarks": 0.11}, ["its face has moved"]),
        ({"landmarks": np.inf}, []),  # a drawn face need not be seen
    ],
)
@pytest.mark.slow
def test_limits(figures, reasons):
    (found,) = verdicts(row(**figures), NO_EDGES, limits(), align=False)
    assert found.reasons == reasons
    assert found.down == pytest.approx(figures.get("down", 0))


@pytest.mark.parametrize(
    ("figures", "uncertain"),
    [
        ({}, False),
        ({"agreement": 0.19}, True),
        ({"agreement": 0.09, "fits": True}, True),
        ({"agreement": 0.09}, False),  # left out
        ({"down": 1.6}, True),
        ({"down": 1.4}, False),
        ({"readable": False, "agreement": np.nan}, False),
    ],
)
def test_a_person_looks_where_nothing_is_sure(figures, uncertain):
    (found,) = verdicts(row(**figures), NO_EDGES, limits(), align=False)
    assert found.uncertain == uncertain


def test_a_shift_that_training_takes_back_is_no_reason():
    off = row(down=1.6, shifted=True)
    assert not verdicts(off, NO_EDGES, limits(), align=True)[0].reasons
    assert not verdicts(off, NO_EDGES, limits("limits.shift=1.7"), align=False)[0].reasons


def test_a_chain_of_near_duplicates_keeps_both_ends():
    """0 ~ 1 ~ 2, but 0 and 2 differ: 1 fits worst and goes, both others stay."""
    rows = np.concatenate([row(agreement=value) for value in (0.9, 0.7, 0.8)])
    chain = np.array([[0, 1], [1, 2]], np.int32)
    assert [each.copy_of for each in verdicts(rows, chain, limits(), False)] == [None, 0, None]
    kept = verdicts(rows, chain, limits("limits.copies=false"), False)
    assert not any(each.reasons for each in kept)


def test_of_near_duplicates_one_without_another_fault_stays():
    rows = np.concatenate([row(agreement=0.95, down=5, shifted=True), row(agreement=0.8)])
    found = verdicts(rows, np.array([[0, 1]], np.int32), limits(), False)
    assert [each.copy_of for each in found] == [1, None]
    assert not found[1].reasons


def test_distances_are_in_medians_of_the_set():
    changes = np.zeros((7, 3 * BLOCK), np.float32)
    changes[:6, ::BLOCK] = np.array([-3, -2, -1, 1, 2, 12])[:, None]
    changes[6] = np.nan
    # The median is 0, the usual distance the median of 1, 1, 2, 2, 3 and 12.
    assert distances(changes) == pytest.approx([1.5, 1, 0.5, 0.5, 1, 6, np.nan], nan_ok=True)
    assert np.isnan(distances(np.full((2, 3 * BLOCK), np.nan, np.float32))).all()


def test_another_change_stands_out_whatever_the_pictures_show():
    measure = StyleChange(small_vgg(), ("first", "second"))
    photos = torch.from_numpy(np.stack([texture(s) for s in range(6)])).permute(0, 3, 1, 2)
    assert not measure(photos, photos).any()
    drawings = 255 - photos
    drawings[3] = photos[3] // 3
    found = measure(photos, drawings)
    assert found.shape == (6, 2 * BLOCK)
    assert distances(found).argmax() == 3


def test_folding_keeps_distances():
    """As if all values of the Gram matrices were compared, within a tenth."""
    values = torch.randn(8, 4096)
    shorter = folded(values)
    assert torch.cdist(shorter, shorter).sum() == pytest.approx(
        float(torch.cdist(values, values).sum()), rel=0.1
    )


def test_the_points_of_a_face():
    points = tuple((10.0 * i, 5.0) for i in range(5))
    lower = tuple((x, y + 4) for x, y in points)
    photo, other = Face(Box(0, 0, 40, 40), points), Face(Box(0, 0, 40, 40), lower)
    far = Face(Box(0, 0, 40, 40), tuple((x + 100, y) for x, y in points))
    assert moved([photo], [far, other]) == pytest.approx(0.1)
    assert moved([photo], []) == np.inf
    assert np.isnan(moved([], [other]))
