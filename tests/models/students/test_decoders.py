"""One tester for every decoder: a new one adds its file, and conf/decoder/NAME.yaml."""

import functools
import importlib
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
import torch.nn.functional as F
import yaml
from torch import nn

from distill.core.errors import DistillError
from distill.export.graph.operator_gate import STRICT_OPERATORS, foreign_operators
from distill.export.onnx import OnnxExporter, parity
from distill.metrics import complexity
from distill.models.batchnorm import fold_batchnorm
from distill.models.students.blocks import double, smoothing
from distill.models.students.decoders.detail import Detail
from distill.models.students.decoders.nnconv import NNConv
from distill.models.students.encoder import MobileNetV2Encoder
from distill.models.students.student import Student

ROOT = Path(__file__).resolve().parents[3]
DECODERS = sorted(
    path.stem
    for path in (ROOT / "conf/decoder").glob("*.yaml")
    if "defaults" not in yaml.safe_load(path.read_text())  # another size: test_student_sizes
)
OPSETS = (9, 11, 13, 17, 20)
MACS = {"nnconv": 125_327_360, "fastdepth": 112_737_280}  # at width 0.5 and 256²
THOP = {"nnconv": 144_218_112, "fastdepth": 132_549_632}
PAPER_PARAMETERS = 373_351


def preset(name: str) -> dict[str, Any]:
    return yaml.safe_load((ROOT / f"conf/decoder/{name}.yaml").read_text())


def build(name: str, width: float = 0.5, channels: int = 3) -> Student:
    chosen = preset(name)
    node = chosen["build"]
    module, _, kind = node.pop("_target_").rpartition(".")
    encoder = MobileNetV2Encoder(width, weights="none", without=chosen["without"])
    decoder = getattr(importlib.import_module(module), kind)
    built = decoder(
        channels=encoder.channels, strides=encoder.strides, out_channels=channels, **node
    )
    return Student(encoder, built)


@pytest.fixture(scope="module")
def folded(lively):
    """Students in evaluation with norms that matter, folded, built once."""

    @functools.cache
    def make(name: str, width: float = 0.5, channels: int = 3) -> nn.Module:
        torch.manual_seed(3)
        return fold_batchnorm(lively(build(name, width, channels)))

    return make


def export(network: nn.Module, path: Path, opset: int = 11, size: int = 64) -> onnx.ModelProto:
    model = OnnxExporter(opset=opset, size=size).export(network)
    onnx.save(model, path)
    return model


def check(name: str, model: onnx.ModelProto, path: Path, network: nn.Module, channels: int) -> None:
    """Its profile's operators and the same picture to 1e-4, one with something in it."""
    beyond = {node.op_type for node in model.graph.node} - STRICT_OPERATORS
    assert beyond == {"strict": set(), "transposed": {"ConvTranspose"}}[preset(name)["profile"]]
    assert not foreign_operators(model, preset(name)["profile"])
    onnx.checker.check_model(path, full_check=True)
    photos = torch.rand(2, 3, 64, 64)
    assert parity(path, network, photos) <= 1e-4
    with torch.no_grad():
        output = network(photos)
    assert output.shape == (2, channels, 64, 64)
    assert output.std() > 0.01


def test_every_decoder_is_in_the_tester():
    files = {p.stem for p in (ROOT / "src/distill/models/students/decoders").glob("[!_]*.py")}
    assert files == set(DECODERS)


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("name", DECODERS)
def test_gradients_reach_every_parameter(name, channels):
    student = build(name, channels=channels).train()
    (student(torch.rand(4, 3, 64, 64)) - torch.rand(4, channels, 64, 64)).square().mean().backward()
    dead = [n for n, p in student.named_parameters() if p.grad is None or not p.grad.any()]
    assert not dead


@pytest.mark.parametrize("name", DECODERS)
def test_sees_only_channels_and_strides(name):
    """Features of the published shapes are enough; there is no encoder in sight."""
    decoder = build(name, 0.5).decoder.eval()
    shapes = zip((3, 8, 16, 16, 48, 80), (1, 2, 4, 8, 16, 32), strict=True)
    with torch.no_grad():
        output = decoder([torch.rand(1, c, 64 // s, 64 // s) for c, s in shapes])
    assert output.shape == (1, 3, 64, 64)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.campaign
def test_exports_at_every_opset(folded, tmp_path, name, opset):
    network = folded(name)
    model = export(network, tmp_path / "s.onnx", opset)
    assert [(o.domain, o.version) for o in model.opset_import] == [("", opset)]
    check(name, model, tmp_path / "s.onnx", network, 3)


@pytest.mark.parametrize("name", DECODERS)
def test_budget(name, tmp_path):
    """At width 0.5 and 256²: 130 M MACs and the paper's parameters are the limit."""
    student = build(name)
    macs = complexity.graph_macs(export(fold_batchnorm(student), tmp_path / "s.onnx", size=256))
    assert macs == MACS.get(name, macs)
    assert macs <= 130_000_000
    assert complexity.parameters(student) <= PAPER_PARAMETERS


@pytest.mark.parametrize("name", THOP)
def test_thop_says_what_the_paper_printed(name):
    assert complexity.thop_macs(build(name), 256) == THOP[name]


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("name", ["detail", "residual"])
def test_starts_near_the_photo(name, channels):
    """Untrained its output is sigmoid(4x - 2) of the photo, give or take, and opaque."""
    student = build(name, channels=channels).train()  # as the first step sees it
    photo = torch.rand(4, 3, 64, 64)
    with torch.no_grad():
        output = student(photo)
    assert (output[:, :3] - torch.sigmoid(4 * photo - 2)).abs().mean() < 0.05
    assert (output[:, 3:] > 0.9).all()


def test_detail_hands_every_pixel_through():
    """With the deep features at zero and nothing added, it is sigmoid(4x - 2) exactly."""
    decoder = build("detail").decoder.eval()
    for module in decoder.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.zeros_(module.weight)
    nn.init.zeros_(decoder.patches.weight[12:])
    photo = torch.rand(1, 3, 64, 64)
    shapes = zip((8, 16, 16, 48, 80), (2, 4, 8, 16, 32), strict=True)
    with torch.no_grad():
        output = decoder([photo, *(torch.zeros(1, c, 64 // s, 64 // s) for c, s in shapes)])
    torch.testing.assert_close(output, torch.sigmoid(4 * photo - 2))


@pytest.mark.parametrize("context", [0, 2])
def test_detail_s_context_reaches_across_the_picture(lively, context):
    """Of 256² the deepest features' far corner is felt at the near one, with context alone."""
    encoder = MobileNetV2Encoder(0.5, weights="none")
    channels, strides = encoder.channels, encoder.strides
    decoder = lively(Student(encoder, Detail(channels, strides, context=context))).eval().decoder
    sides = [256 // stride for stride in strides]
    features = [torch.rand(1, c, s, s) for c, s in zip(channels, sides, strict=True)]
    other = [*features[:-1], features[-1].clone()]
    other[-1][..., -1, -1] += 1
    with torch.no_grad():
        changed = (decoder(features) - decoder(other)).abs()[..., 0, 0].max() > 1e-6
    assert changed == (context > 0)


def test_smoothing_begins_as_bilinear_enlargement():
    x = torch.rand(2, 3, 6, 7)
    expected = F.interpolate(x, scale_factor=2, mode="bilinear")
    inside = (..., slice(1, -1), slice(1, -1))  # the convolution's border is zero
    torch.testing.assert_close(smoothing(3)(double(x))[inside], expected[inside])


def test_a_convolution_of_the_output_begins_as_the_identity():
    shape = ((3, 8, 16, 16, 48, 80), (1, 2, 4, 8, 16, 32))
    torch.manual_seed(0)
    plain, smoothed = Detail(*shape).eval(), Detail(*shape, output_kernel=5).eval()
    missing, _ = smoothed.load_state_dict(plain.state_dict(), strict=False)
    features = [torch.rand(1, c, 64 // s, 64 // s) for c, s in zip(*shape, strict=True)]
    assert missing == ["smooth_output.weight"]
    torch.testing.assert_close(smoothed(features), plain(features))


def test_kernels_of_each_size():
    decoder = Detail(
        (3, 8, 16, 16, 48, 80), (1, 2, 4, 8, 16, 32), blocks=[1, 1, 1], kernel=[3, 5, 7]
    )
    blocks = decoder.at2[0], decoder.at4[0], decoder.at8[0]
    assert [block.added[0].kernel_size[0] for block in blocks] == [3, 5, 7]


def test_nnconv_says_that_it_needs_the_last_stage():
    encoder = MobileNetV2Encoder(weights="none", stages=4)
    with pytest.raises(DistillError, match=r"decoder=nnconv: .* stride 32, not to 16"):
        NNConv(encoder.channels, encoder.strides)


@pytest.mark.parametrize(
    "wrong",
    [
        {"half": 8},
        {"kernel": 4},
        {"kernel": [3, 5]},
        {"kernel": [3, 5, 4]},
        {"output_kernel": 4},
        {"context_kernel": 8},
        {"blocks": [1, 1]},
    ],
)
def test_detail_refuses_what_it_cannot_be(wrong):
    with pytest.raises(DistillError, match=rf"decoder\.build\.{next(iter(wrong))}="):
        Detail((3, 8, 16, 16, 48, 80), (1, 2, 4, 8, 16, 32), **wrong)
