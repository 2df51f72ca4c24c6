import re
import warnings

import pytest
import torch
import torchvision
from safetensors.torch import load_file
from torch import Tensor, nn

from distill.core.errors import DistillError
from distill.models.students.encoder import (
    ADDING,
    IMAGENET,
    SYMMETRIC,
    MobileNetV2Encoder,
    Scaling,
    fold_scaling,
)

# 16, 24, 32, 96, 160 times the width, rounded to 8 and never down by more than a tenth.
CHANNELS = {
    0.35: (3, 8, 8, 16, 32, 56),
    0.5: (3, 8, 16, 16, 48, 80),
    0.75: (3, 16, 24, 24, 72, 120),
    1.0: (3, 16, 24, 32, 96, 160),
}
MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


@pytest.fixture(scope="module")
def full_width(tmp_path_factory):
    """torchvision's whole network with random weights and statistics, and its file."""
    torch.manual_seed(2)
    network = torchvision.models.mobilenet_v2(weights=None).eval()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0.0, 0.5)
            nn.init.normal_(module.running_mean, 0.0, 0.5)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    path = tmp_path_factory.mktemp("encoder") / "full.pth"
    torch.save(network.state_dict(), path)
    return network, path


def inside(x: Tensor) -> Tensor:
    """Without the border, where the convolution pads with zeros of another range."""
    return x[..., 1:-1, 1:-1]


@pytest.mark.parametrize("width", CHANNELS)
def test_publishes_the_channels_and_strides_it_gives(width):
    encoder = MobileNetV2Encoder(width, weights="none").eval()
    assert encoder.channels == CHANNELS[width]
    assert encoder.strides == (1, 2, 4, 8, 16, 32)
    photo = torch.rand(1, 3, 64, 96)
    with torch.no_grad():
        features = encoder(photo)
    assert torch.equal(features[0], photo)
    expected = [
        (1, c, 64 // s, 96 // s) for c, s in zip(CHANNELS[width], encoder.strides, strict=True)
    ]
    assert [tuple(f.shape) for f in features] == expected


@pytest.mark.parametrize(("stages", "without"), [(5, ADDING), (4, [3, 16])])
def test_leaves_out_stages_and_blocks_that_only_add(stages, without):
    """A block that adds nothing is the same as one that is not there."""
    torch.manual_seed(0)
    whole = MobileNetV2Encoder(weights="none")
    cut = MobileNetV2Encoder(weights="none", stages=stages, without=without)
    assert cut.channels == whole.channels[: stages + 1]
    assert cut.strides == whole.strides[: stages + 1]
    assert len(cut.state_dict()) < len(whole.state_dict())
    cut.load_state_dict({k: whole.state_dict()[k] for k in cut.state_dict()})
    for number in without:  # its last BatchNorm gives zero
        nn.init.zeros_(whole.blocks[number].conv[-1].weight)
    photo = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        pairs = zip(whole.eval()(photo)[: stages + 1], cut.eval()(photo), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("expansion", [2, 3, 6])
def test_blocks_are_as_wide_inside_as_told(expansion):
    encoder = MobileNetV2Encoder(0.5, weights="none", expansion=expansion)
    assert encoder.channels == CHANNELS[0.5]
    for block in encoder.blocks[2:]:
        inputs, inside = block.conv[0][0].in_channels, block.conv[0][0].out_channels
        assert inside == expansion * inputs
    assert encoder.blocks[1].conv[0][0].in_channels == 16  # it has no layer that widens


def test_each_stage_may_have_an_expansion_of_its_own():
    blocks = MobileNetV2Encoder(0.5, weights="none", expansion=[2, 3, 4, 5, 6]).blocks
    layers = [block.conv[0][0] for block in blocks[2:]]
    factors = [layer.out_channels // layer.in_channels for layer in layers]
    assert factors == 2 * [2] + 3 * [3] + 4 * [4] + 3 * [5] + 3 * [6]


@pytest.mark.parametrize(
    ("width", "channels"),  # the published ones times the width, to the next 16 as above to 8
    [(0.25, (3, 16, 16, 16, 32, 48)), (0.35, (3, 16, 16, 16, 32, 64))],
)
def test_channels_come_in_multiples(width, channels):
    encoder = MobileNetV2Encoder(width, weights="none", multiple=16)
    assert encoder.channels == channels
    norms = [m for m in encoder.modules() if isinstance(m, nn.BatchNorm2d)]
    assert all(norm.num_features % 16 == 0 for norm in norms)


@pytest.mark.parametrize("number", [-1, 0, 1, 2, 4, 7, 11, 14, 17])
def test_other_blocks_cannot_be_left_out(number):
    with pytest.raises(
        DistillError, match=rf"encoder\.without=\[{number}\]: .* cannot be left out"
    ):
        MobileNetV2Encoder(weights="none", without=[number])


def test_has_relu_for_relu6():
    kinds = {type(m) for m in MobileNetV2Encoder(weights="none").modules()}
    assert nn.ReLU in kinds
    assert nn.ReLU6 not in kinds


@pytest.mark.parametrize(
    "wrong",
    [
        {"width": 0.0},
        {"width": 1.4},
        {"stages": 3},
        {"expansion": 1},
        {"expansion": 7},
        {"expansion": (6, 6, 6)},
        {"expansion": (6, 6, 6, 6, 1)},
        {"multiple": 12},
    ],
)
def test_a_size_without_weights_is_refused(wrong):
    (name, value), *_ = wrong.items()
    with pytest.raises(DistillError, match=re.escape(f"encoder.{name}={value}: ")):
        MobileNetV2Encoder(**wrong, weights="none")


@pytest.mark.parametrize(
    "scaling", [IMAGENET, SYMMETRIC, Scaling((3.0, 0.5, 1.0), (0.1, -2.0, 0.0))]
)
def test_fold_scaling_is_explicit_preprocessing(scaling):
    conv, norm = nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8).eval()
    nn.init.normal_(norm.running_mean)
    nn.init.uniform_(norm.running_var, 0.5, 2.0)
    nn.init.uniform_(norm.weight, 0.5, 2.0)
    photo = torch.rand(2, 3, 32, 32)
    scale = torch.tensor(scaling.scale).view(3, 1, 1)
    shift = torch.tensor(scaling.shift).view(3, 1, 1)
    with torch.no_grad():
        expected, untouched = norm(conv(photo * scale + shift)), norm(conv(photo))
        fold_scaling(conv, norm, scaling)
        folded = norm(conv(photo))
    torch.testing.assert_close(inside(folded), inside(expected), atol=1e-5, rtol=1e-5)
    assert (inside(untouched) - inside(expected)).abs().max() > 0.1


def test_scalings_are_the_published_ones():
    photo = torch.rand(3, 4, 4)
    for scaling, expected in ((IMAGENET, (photo - MEAN) / STD), (SYMMETRIC, photo * 2 - 1)):
        scale = torch.tensor(scaling.scale).view(3, 1, 1)
        shift = torch.tensor(scaling.shift).view(3, 1, 1)
        torch.testing.assert_close(photo * scale + shift, expected)


def test_a_torchvision_file_reads_photos_normalised(full_width):
    network, path = full_width
    encoder = MobileNetV2Encoder(1.0, weights=str(path)).eval()
    photo = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        expected = network.features[0]((photo - MEAN) / STD)
        ours = encoder.blocks[0](photo).clamp(max=6)
        torch.testing.assert_close(inside(ours), inside(expected), atol=1e-5, rtol=1e-5)
        # Deeper blocks are the file's own: only ReLU6's ceiling is gone.
        x = torch.rand(1, 96, 32, 32) * 0.1
        torch.testing.assert_close(encoder.blocks[2].conv[1](x), network.features[2].conv[1](x))


@pytest.mark.parametrize(
    ("width", "size"),
    [
        (0.35, {}),
        (0.5, {}),
        (0.75, {}),
        (0.25, {"expansion": 3}),
        (0.6, {"stages": 4}),
        (0.35, {"multiple": 16}),
    ],
)
def test_full_width_is_sliced(full_width, width, size):
    network, path = full_width
    whole = network.state_dict()
    encoder = MobileNetV2Encoder(width, weights=str(path), **size)
    for name, tensor in encoder.blocks.state_dict().items():
        if name in ("0.0.weight", "0.1.running_mean"):
            continue  # rewritten by fold_scaling
        corner = tuple(slice(0, n) for n in tensor.shape)
        assert torch.equal(tensor, whole[f"features.{name}"][corner]), name
    first = encoder.blocks[0][0].weight
    sliced = whole["features.0.0.weight"][: len(first)] / STD
    torch.testing.assert_close(first, sliced)


def test_more_than_full_width_has_no_weights(full_width):
    """Of 24 channels the next multiple of 16 is 32."""
    with pytest.raises(DistillError, match=r"too narrow .*encoder\.width, encoder\.multiple"):
        MobileNetV2Encoder(1.0, weights=str(full_width[1]), multiple=16)


def test_another_networks_file_is_named(tmp_path):
    torch.save({"conv1.weight": torch.zeros(1)}, tmp_path / "resnet.pth")
    with pytest.raises(DistillError, match=r"resnet\.pth: no MobileNetV2.*lacks 0\.0\.weight"):
        MobileNetV2Encoder(weights=str(tmp_path / "resnet.pth"))


def test_a_path_that_is_not_there_is_named():
    with pytest.raises(DistillError, match=r"encoder\.weights=gone\.pth: no such file"):
        MobileNetV2Encoder(weights="gone.pth")


@pytest.mark.parametrize("width", CHANNELS)
def test_without_weights_it_warns_and_starts_at_random(width):
    with pytest.warns(UserWarning, match="random weights"):
        encoder = MobileNetV2Encoder(width, weights="imagenet", download=False)
    assert encoder.blocks[0][0].weight.std() > 0


@pytest.mark.usefixtures("no_downloads")
def test_without_a_network_it_warns_too():
    with pytest.warns(UserWarning, match="random weights"):
        MobileNetV2Encoder(0.5, weights="imagenet", download=True)


@pytest.mark.parametrize(
    ("width", "multiple", "file"),
    [
        (0.35, 8, "mobilenet_v2_035_features.safetensors"),
        (0.5, 8, "mobilenet_v2_050_features.safetensors"),
        (0.75, 8, "mobilenet_v2_100.safetensors"),  # sliced
        (1.0, 8, "mobilenet_v2_100.safetensors"),
        (0.504, 8, "mobilenet_v2_100.safetensors"),  # no file of that width has the name of 0.5
        (0.25, 8, "mobilenet_v2_100.safetensors"),
        (0.35, 16, "mobilenet_v2_100.safetensors"),  # wider than the file of that name
    ],
)
def test_real_weights_are_found_by_width(assets, monkeypatch, width, multiple, file):
    """Each file expects photos in [-1, 1]; ours are in [0, 1], so the first layer doubles."""
    monkeypatch.setenv("DISTILL_WEIGHTS", str(assets / "encoders"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder = MobileNetV2Encoder(width, weights="imagenet", download=False, multiple=multiple)
    state = load_file(assets / "encoders" / file)
    state = {k.removeprefix("features."): v for k, v in state.items()}
    for name, tensor in encoder.blocks.state_dict().items():
        if name == "0.1.running_mean":
            continue
        corner = state[name][tuple(slice(0, n) for n in tensor.shape)]
        factor = 2 if name == "0.0.weight" else 1
        assert torch.equal(tensor, corner * factor), name
