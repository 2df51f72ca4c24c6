import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn
from torchvision.models import vgg

from distill.core.errors import DistillError
from distill.losses.feature_distance import FeatureDistance
from distill.losses.style import Style
from distill.losses.vgg import _layers, vgg_features
from distill_picture.picture_losses import PictureContent
from support.small_vgg import small_vgg

MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
THREE = ("relu1_1", "relu2_1", "relu3_1")


def test_features_are_of_the_normalised_picture():
    vgg, picture = small_vgg(), torch.rand(2, 3, 8, 8)
    convs = [m for m in vgg.features if isinstance(m, nn.Conv2d)]
    first = F.relu(convs[0]((picture - MEAN) / STD))
    second = F.relu(convs[1](F.max_pool2d(first, 2)))
    named = vgg(picture)
    assert list(named) == ["first", "second"]
    torch.testing.assert_close(named["first"], first)
    torch.testing.assert_close(named["second"], second)


def test_backbone_is_cut_and_frozen():
    vgg = small_vgg()
    assert len(vgg.features) == 5
    assert not any(p.requires_grad for p in vgg.parameters())


def test_layers_by_their_names_in_the_paper():
    """Positions of torchvision's modules, counted by hand; each is behind its convolution."""
    sixteen, nineteen = _layers(vgg.cfgs["D"]), _layers(vgg.cfgs["E"])
    wanted = {"relu1_1": 1, "relu1_2": 3, "relu2_1": 6, "relu2_2": 8, "relu3_1": 11}
    assert wanted.items() <= sixteen.items()
    assert wanted.items() <= nineteen.items()
    assert (sixteen["relu3_3"], sixteen["relu4_3"], nineteen["relu5_4"]) == (15, 22, 35)
    assert (len(sixteen), len(nineteen)) == (13, 16)


@pytest.mark.usefixtures("no_downloads")
def test_missing_vgg16_names_the_file_at_hand(assets, monkeypatch):
    monkeypatch.setenv("DISTILL_WEIGHTS", str(assets / "perceptual"))
    with pytest.raises(DistillError, match=r"style_backbone=vgg19_relu3_1"):
        vgg_features("vgg16", THREE, "style")


def test_real_backbone_reads_its_three_layers(assets, monkeypatch):
    """Against the file's convolutions applied one by one."""
    monkeypatch.setenv("DISTILL_WEIGHTS", str(assets / "perceptual"))
    state = load_file(assets / "perceptual/vgg19_relu3_1.safetensors")
    picture = torch.rand(1, 3, 32, 32)
    x, expected = (picture - MEAN) / STD, []
    for index in (0, 2, 5, 7, 10):
        if index in (5, 10):
            x = F.max_pool2d(x, 2)
        x = F.relu(
            F.conv2d(x, state[f"features.{index}.weight"], state[f"features.{index}.bias"], 1, 1)
        )
        expected += [x] if index in (0, 5, 10) else []
    named = vgg_features("vgg19_relu3_1", THREE, "style")(picture)
    assert list(named) == [*THREE]
    for got, want in zip(named.values(), expected, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("no_downloads")
def test_missing_weights_name_the_term_that_needs_them(tmp_path, monkeypatch):
    monkeypatch.setenv("DISTILL_WEIGHTS", str(tmp_path))
    for term, name in (
        (Style, "style"),
        (FeatureDistance, "features"),
        (PictureContent, "content"),
    ):
        said = rf"loss\.weights\.{name}: weights file vgg16.*{name}=0"
        with pytest.raises(DistillError, match=said):
            term("vgg16")
    with pytest.raises(DistillError, match=r"^style_backbone=vgg16: weights file vgg16"):
        vgg_features("vgg16", THREE, None)
