"""What every term of two pictures has in common."""

import pytest
import torch

from distill.losses import feature_distance, style
from distill.losses.differences import Differences
from distill.losses.feature_distance import FeatureDistance
from distill.losses.ink import InkWeighted
from distill.losses.loose import Loose
from distill.losses.phases import Phases
from distill.losses.smooth_l1 import SmoothL1
from distill.losses.sobel import Sobel
from distill.losses.style import Style
from distill_picture import picture_losses as picture
from distill_picture.picture_losses import PictureContent
from support.descent import descend
from support.small_vgg import small_vgg

TERMS = {
    "smooth_l1": SmoothL1,
    "sobel": Sobel,
    "differences": Differences,
    "phases": Phases,
    "ink": InkWeighted,
    "loose": lambda: Loose(radius=2, window=9),
    "style": Style,
    "features": lambda: FeatureDistance(side=None),
    "content": lambda: PictureContent(side=None, halvings=1),
}


@pytest.fixture
def term(request, monkeypatch):
    network = small_vgg()  # one and the same for all terms of a test
    for module in (feature_distance, style, picture):
        monkeypatch.setattr(module, "vgg_features", lambda *_: network)
    return TERMS[request.param]()


@pytest.mark.parametrize("term", TERMS, indirect=True)
def test_equal_pictures_lose_nothing_and_others_something(term):
    same = torch.rand(2, 3, 32, 32)
    assert term(same, same.clone()).item() == pytest.approx(0, abs=1e-6)
    assert term(same, torch.rand(2, 3, 32, 32)).item() > 1e-6


@pytest.mark.parametrize("term", TERMS, indirect=True)
def test_descends_and_learns_nothing_itself(term):
    values = descend(term, torch.rand(2, 3, 32, 32), 0.5 * torch.rand(2, 3, 32, 32), rate=0.01)
    assert values[-1] < 0.97 * values[0]
    assert all(weight.grad is None for weight in term.parameters())


@pytest.mark.parametrize("term", ["ink", "loose", "style", "features", "content"], indirect=True)
def test_transparency_lies_over_white(term):
    rgb, alpha = torch.rand(2, 3, 32, 32), torch.rand(2, 1, 32, 32)
    target = torch.rand(2, 3, 32, 32)
    opaque = torch.cat([target, torch.ones(2, 1, 32, 32)], 1)
    see_through, over_white = torch.cat([rgb, alpha], 1), rgb * alpha + (1 - alpha)
    torch.testing.assert_close(term(see_through, opaque), term(over_white, target))
    torch.testing.assert_close(term(opaque, see_through), term(target, over_white))
    assert descend(term, see_through, opaque)[-1] < term(see_through, opaque).item()
