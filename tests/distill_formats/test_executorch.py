"""ExecuTorch: nothing outside XNNPACK, the same picture, versions and bad files in one line."""

import json
import logging
import os
import subprocess
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper
from torch import Tensor, nn

from distill.check.check_report import check
from distill.core.errors import DistillError
from distill.export.conversion import _make
from distill.export.onnx import OnnxExporter
from distill.export.snippets import snippets_of
from distill_formats import executorch_profile
from distill_formats.executorch import ExecuTorch
from distill_formats.executorch_int8 import ExecuTorchInt8, before_smaller, equalised
from distill_formats.executorch_profile import PROFILE
from distill_formats.xnnpack_graph import in_xnnpack
from support.device_graphs import build, clean, picture, save, weight
from support.export_photos import output_of, photos
from support.export_trials import convert

TORCH = torch.ops.aten
APP = os.environ.get("DISTILL_REACT_NATIVE", "")
ABOUT = '{"style": "s", "version": "1"}'


class Enlarging(nn.Module):
    """Nearest ×2 and ×(3, 2), one by no whole number; transposed convolutions of four kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.lapping = (
            nn.Conv2d(3, 4, 3, padding=1),
            nn.ConvTranspose2d(3, 3, 3, 2, 1, 1),
        )
        self.patches = nn.ConvTranspose2d(4, 3, 2, 2)
        self.lines = nn.ConvTranspose2d(3, 2, (1, 2), (1, 2), bias=False)

    def forward(self, photo: Tensor) -> Tensor:
        x = F.interpolate(self.wide(photo), scale_factor=2.0, mode="nearest")
        x = F.interpolate(torch.relu(x), scale_factor=(3.0, 2.0), mode="nearest")
        x = F.conv_transpose2d(self.lines(self.lapping(self.patches(x))), torch.ones(2, 2, 2, 2))
        return F.interpolate(x, (97, 200), mode="nearest")


def test_enlarging_in_operators_of_xnnpack_is_exact():
    torch.manual_seed(0)
    network, photo = Enlarging().eval(), torch.rand(2, 3, 4, 6)
    graph = in_xnnpack(torch.export.export(network, (photo,)).module(check_guards=False))
    used = [node.target for node in graph.graph.nodes if node.op == "call_function"]
    assert used.count(TORCH.upsample_nearest2d.vec) == 1
    assert used.count(TORCH.conv_transpose2d.input) == 2
    torch.testing.assert_close(graph(photo), network(photo), atol=1e-6, rtol=0)


class Wide(nn.Module):
    """Depthwise 9×9 with and without bias and 7×7; a 9×9 of stride 2, one that is no square."""

    def __init__(self) -> None:
        super().__init__()
        self.quartered = nn.Sequential(
            nn.Conv2d(4, 4, 9, padding=4, groups=4),
            nn.Conv2d(4, 4, 9, padding=4, groups=4, bias=False),
            nn.Conv2d(4, 4, 7, padding=3, groups=4),
        )
        self.kept = nn.Sequential(
            nn.Conv2d(4, 4, 9, 2, 4, groups=4),
            nn.Conv2d(4, 4, (9, 3), padding=(4, 1), groups=4),
            nn.Conv2d(4, 8, 9, padding=4, groups=4),
        )

    def forward(self, photo: Tensor) -> Tensor:
        return self.kept(self.quartered(photo))


def test_wide_depthwise_kernels_as_quarters_are_exact():
    torch.manual_seed(0)
    network, photo = Wide().eval(), torch.rand(2, 4, 6, 11)
    graph = in_xnnpack(torch.export.export(network, (photo,)).module(check_guards=False))
    sides = [each.shape[-2:] for name, each in graph.named_buffers() if each.dim() == 4]
    assert sides == [(5, 5)] * 8 + [(4, 4)] * 4
    used = [node.target for node in graph.graph.nodes if node.op == "call_function"]
    assert used.count(TORCH.conv2d.default) == 4 * 3 + 3
    torch.testing.assert_close(graph(photo), network(photo), atol=1e-6, rtol=0)


class Headed(nn.Module):
    """A last layer, and behind it what works by pixel, across rows, and on the whole picture."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.gain = nn.ConvTranspose2d(3, 4, 2, 2), nn.Conv2d(3, 4, 1)
        self.rows = nn.Parameter(torch.rand(1, 1, 10, 1))

    def forward(self, photo: Tensor) -> Tensor:
        gain = self.gain(photo.mean((2, 3), keepdim=True))
        logits = gain * self.patches(photo) + gain
        paint, bare = logits[:, :3].sigmoid(), torch.sigmoid(2.0 * logits[:, 3:])
        return paint * bare / (1.0 + logits[:, :, :1, :1].mean()) + paint.flip(2) * self.rows


def test_pixel_by_pixel_behind_the_last_layer_is_in_planes():
    torch.manual_seed(0)
    network, photo = Headed().eval(), torch.rand(2, 3, 5, 7)
    graph = in_xnnpack(torch.export.export(network, (photo,)).module(check_guards=False))
    again = torch.export.export(graph, (photo,))
    found = [n.meta["val"].ndim for n in again.graph.nodes if n.target is TORCH.sigmoid.default]
    assert found == [3, 3]
    torch.testing.assert_close(graph(photo), network(photo), atol=1e-6, rtol=0)


class Computed(nn.Module):
    """A convolution whose weight is computed, and a buffer that nothing uses."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("inks", torch.rand(2, 3))
        self.register_buffer("unused", torch.ones(1), persistent=False)

    def forward(self, photo: Tensor) -> Tensor:
        return F.conv2d(photo, (self.inks[1:] - self.inks[:1])[..., None, None], self.inks[0, :1])


def test_computed_weights_are_constants():
    network, photo = Computed().eval(), torch.rand(1, 3, 4, 4)
    graph = in_xnnpack(torch.export.export(network, (photo,)).module(check_guards=False))
    used = [node.target for node in graph.graph.nodes if node.op == "call_function"]
    assert used == [TORCH.conv2d.default]
    assert len([*graph.buffers()]) == 2
    torch.testing.assert_close(graph(photo), network(photo), atol=1e-6, rtol=0)


class Mirrored(nn.Module):
    """Its one operator that XNNPACK lacks turns the picture round."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, photo: Tensor) -> Tensor:
        return torch.sigmoid(self.layer(photo).flip(3))


@pytest.fixture
def mirrored(source):
    pytest.importorskip("executorch", reason="the extra distill[executorch] is not installed")
    exporter = replace(source.exporter, size=32)
    return replace(source, folded=Mirrored().eval(), exporter=exporter)


@pytest.mark.slow
@pytest.mark.parametrize("source", ["detail"], indirect=True)
def test_what_stays_outside_is_named_with_the_version(mirrored, tmp_path, monkeypatch):
    made = ExecuTorch()
    made.convert(mirrored, tmp_path)
    version = metadata.version("executorch").partition("+")[0]
    said = json.loads((tmp_path / "student.pte.json").read_text())
    assert said["executorch"] == version
    assert said["outside"] == {"aten.flip.default": 1}
    assert said["terms"] == json.loads(json.dumps(mirrored.description.terms))
    assert made.note == f"ExecuTorch {version}; outside XNNPACK: 1 aten.flip.default"
    photo, run = torch.rand(1, 3, 32, 32), made.open(tmp_path)
    assert run is not None
    torch.testing.assert_close(
        torch.from_numpy(run(photo.numpy())), mirrored.folded(photo).detach(), atol=1e-5, rtol=0
    )
    result = check(tmp_path / "student.pte", PROFILE)
    assert result.ok
    assert result.graph.inputs[0].shape == (1, 3, 32, 32)
    assert {each.what for each in result.all_findings} == {
        "aten::flip.out is in no backend's part",
        f"of ExecuTorch {version}",
    }
    monkeypatch.setattr(executorch_profile, "version", lambda _: "1.0.0")
    (newer,) = check(tmp_path / "student.pte", PROFILE).findings
    assert newer.what == f"of ExecuTorch {version}; here is 1.0.0"


@pytest.mark.slow
@pytest.mark.parametrize("source", ["detail"], indirect=True)
@pytest.mark.parametrize(
    ("backend", "package", "says"),
    [("coreml", "coremltools", "CoreMLBackend"), ("vulkan", "executorch", "VulkanBackend")],
)
def test_other_backends_take_it_and_do_not_run_here(backend, package, says, mirrored, tmp_path):
    pytest.importorskip(package, reason=f"{package} is not installed")
    made, level = ExecuTorch(backend=backend), logging.root.level
    made.convert(replace(mirrored, folded=nn.Conv2d(3, 3, 3, padding=1).eval()), tmp_path)
    assert logging.root.level == level
    name = {"coreml": "Core ML", "vulkan": "Vulkan"}[backend]
    assert made.note.endswith(f"; outside {name}: nothing")
    assert made.open(tmp_path) is None
    found = check(tmp_path / "student.pte", PROFILE).all_findings
    assert f"a part for {says}" in {each.what for each in found}


@pytest.mark.slow
@pytest.mark.parametrize("source", ["detail"], indirect=True)
def test_a_backend_whose_package_is_missing_is_one_line(mirrored, tmp_path, monkeypatch):
    for name in [each for each in sys.modules if each.startswith("executorch.backends.apple")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "coremltools", None)
    with pytest.raises(DistillError, match=r"^executorch: .*cannot be imported \(.*coremltools"):
        ExecuTorch(backend="coreml").convert(mirrored, tmp_path)


def test_the_tail_keeps_its_float_and_the_rest_does_not():
    network = nn.Sequential(
        nn.Conv2d(3, 4, 3, 2, 1),  # to half of 16: a smaller one is to come
        nn.Conv2d(4, 4, 3, 2, 1),
        nn.ConvTranspose2d(4, 4, 2, 2),  # to half
        nn.Conv2d(4, 3, 3, padding=1),
    )
    module = torch.export.export(network, (torch.zeros(1, 3, 16, 16),)).module(check_guards=False)
    layers = [each for each in module.graph.nodes if each.op == "call_function"]
    small = before_smaller(module, 16)
    assert [each in small for each in layers] == [True, True, False, False]


@pytest.mark.parametrize("source", ["nnconv", "detail"], indirect=True)
def test_equalised_weights_give_the_same_picture(source):
    network = equalised(source, photos(4).numpy())
    torch.testing.assert_close(
        output_of(network, photos(4)), output_of(source.folded, photos(4)), atol=1e-4, rtol=0
    )
    both = zip(network.parameters(), source.folded.parameters(), strict=True)
    assert sum(not torch.allclose(new, old) for new, old in both) > 20


class Twice(nn.Module):
    """A layer that runs at a quarter of the size, and at the whole, which is of the tail."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, photo: Tensor) -> Tensor:
        whole = self.layer(F.avg_pool2d(photo, 4))
        return torch.sigmoid(self.layer(photo) + F.interpolate(whole, scale_factor=4.0))


@pytest.mark.slow
@pytest.mark.parametrize("source", ["detail"], indirect=True)
@pytest.mark.parametrize("asked", [{}, {"size": (72, 100), "input": "uint8_nhwc", "batch": 2}])
def test_int8_of_a_layer_that_runs_twice_is_nearly_the_same(asked, mirrored, tmp_path, capsys):
    torch.manual_seed(0)
    exporter = replace(mirrored.exporter, **{"size": 64} | asked)
    some = F.interpolate(photos(8), exporter.sides)
    source = replace(mirrored, folded=Twice().eval(), exporter=exporter, calibration=lambda: some)
    made = ExecuTorchInt8()
    assert convert(made, source, tmp_path) < 0.05
    assert asked or made.note.endswith("; outside XNNPACK: nothing")
    assert "executorch_int8: calibrated on the 8 photos there are" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"onnx" * 9, b"\x08\0\0\0ET13" + b"\0" * 99])
def test_other_files_are_one_line(content, tmp_path):
    pytest.importorskip("executorch", reason="the extra distill[executorch] is not installed")
    (tmp_path / "a.pte").write_bytes(content)
    error = check(tmp_path / "a.pte", PROFILE).error
    assert "a.pte: not a readable ExecuTorch file (no ET12 at its beginning" in error
    assert "\n" not in error


@pytest.mark.slow
@pytest.mark.parametrize("source", ["detail"], indirect=True)
def test_an_operator_without_a_kernel_is_one_line(mirrored, tmp_path):
    class Odd(nn.Module):
        def forward(self, photo: Tensor) -> Tensor:
            return torch.fft.fft2(photo).abs()

    with pytest.raises(DistillError, match=r"^executorch: its converter failed .*fft"):
        _make(ExecuTorch(), replace(mirrored, folded=Odd()), tmp_path, torch.rand(1, 3, 32, 32))


def test_what_xnnpack_leaves_of_an_onnx_file(tmp_path):
    assert check(save(clean(), tmp_path), PROFILE).all_findings == []
    nodes = [
        helper.make_node("InstanceNormalization", ["x", "s", "b"], ["n"], "norm"),
        helper.make_node(
            "Resize", ["n", "", "", "sides"], ["y"], "smaller", antialias=1, mode="linear"
        ),
    ]
    sides = numpy_helper.from_array(np.array([1, 4, 4, 4]), "sides")
    model = build(
        nodes, [weight("s", 4), weight("b", 4), sides], 18, outputs=[picture("y", 1, 4, 4, 4)]
    )
    found = check(save(model, tmp_path), PROFILE).all_findings
    assert {(each.level, each.node) for each in found} == {("note", "norm"), ("note", "smaller")}


@pytest.mark.slow
@pytest.mark.skipif(not APP, reason="no DISTILL_REACT_NATIVE, a folder with its node_modules")
def test_react_native_s_snippet_fits_the_types(tmp_path):
    """Against react-native-executorch itself, which comes with 220 MB of React Native."""
    code = snippets_of(ExecuTorch(), OnnxExporter(size=(64, 96), about=ABOUT), 3)["tsx"]
    (tmp_path / "code.tsx").write_text(code)
    (tmp_path / "node_modules").symlink_to(Path(APP) / "node_modules")
    command = (
        "node node_modules/typescript/bin/tsc --noEmit --strict --skipLibCheck --jsx react-jsx"
    )
    options = "--module esnext --moduleResolution bundler --target es2022 --types react code.tsx"
    done = subprocess.run(
        [*command.split(), *options.split()], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
