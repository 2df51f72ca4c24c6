"""A metric of the user's own is called once before anything is scored."""

import pytest
import torch

from distill.core.errors import DistillError
from distill.metrics.metric import user_metrics
from support.refusals import refusal

PARTS = "support.own_parts"


def test_a_right_one_is_a_figure_of_each_picture():
    found = user_metrics({"levels": {"_target_": f"{PARTS}.Levels"}})["levels"]
    black, white = torch.zeros(2, 3, 4, 4), torch.ones(2, 3, 4, 4)
    assert found(black, white).tolist() == [255.0, 255.0]


def test_what_it_gives_later_is_checked_too():
    found = user_metrics({"own": {"_target_": f"{PARTS}.PerRange"}})["own"]
    white = torch.ones(1, 3, 4, 4)
    assert not found(torch.rand(1, 3, 4, 4), white).requires_grad
    with pytest.raises(DistillError, match=r"metrics\.own: gave \(1,\) float32, want 1 finite"):
        found(white, white)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Mean", "metrics.own: gave () float32, want 2 finite figures, one a picture, (2,)"),
        ("Half", "metrics.own._target_=support.own_parts.Half: "),
        ("half", "metrics.own._target_=support.own_parts.half: "),
    ],
)
def test_a_wrong_one_is_one_line(name, said):
    assert refusal(user_metrics, {"own": {"_target_": f"{PARTS}.{name}"}}).startswith(said)
