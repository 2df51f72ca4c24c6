import copy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from distill.core.errors import DistillError
from distill.core.nodes import bind
from distill.core.onnx_files import FLUSH, flush_subnormals
from distill.export.graph.operator_gate import foreign_operators
from distill.export.onnx import OnnxExporter, parity
from distill.models import zoo
from distill.models.batchnorm import fold_batchnorm
from distill.models.students.decoders.nnconv import NNConv
from distill.models.students.encoder import MobileNetV2Encoder
from distill.models.students.student import Student


@pytest.fixture(scope="module")
def student(lively):
    """A folded student, small: width 0.35."""
    torch.manual_seed(4)
    encoder = MobileNetV2Encoder(0.35, weights="none")
    return fold_batchnorm(lively(Student(encoder, NNConv(encoder.channels, encoder.strides))))


def weights(model: onnx.ModelProto) -> list[np.ndarray]:
    return [numpy_helper.to_array(t) for t in model.graph.initializer]


def sides(value: onnx.ValueInfoProto) -> list[int | str]:
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


def run(path: Path, photo: Tensor) -> np.ndarray:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["stylized"], {"photo": photo.numpy()})[0]


def test_one_static_file_in_known_names(student, tmp_path):
    model = OnnxExporter(opset=11, size=96).export(student)
    onnx.save(model, tmp_path / "student.onnx")
    assert [p.name for p in tmp_path.iterdir()] == ["student.onnx"]
    assert all(t.data_location == TensorProto.DEFAULT for t in model.graph.initializer)
    assert [v.name for v in model.graph.input] == ["photo"]
    assert [v.name for v in model.graph.output] == ["stylized"]
    assert sides(model.graph.input[0]) == sides(model.graph.output[0]) == [1, 3, 96, 96]
    # Four bytes a weight, and names beside: no stack traces (130 kB), no second copy.
    count = sum(p.numel() for p in student.parameters())
    assert (tmp_path / "student.onnx").stat().st_size < 4 * count + 50_000


@pytest.mark.parametrize("opset", [9, 13, 20])
def test_says_nothing_of_the_machine(student, monkeypatch, opset):
    """Whatever torch writes: some versions put the stack of every node into the file."""
    trace = OnnxExporter._trace

    def talkative(exporter: OnnxExporter, network: nn.Module) -> bytes:
        model = onnx.load_from_string(trace(exporter, network))
        model.doc_string = model.graph.doc_string = "made at home/me/student.py"
        model.metadata_props.add(key="stack", value="home/me/student.py")
        for node in model.graph.node:
            node.doc_string = "home/me/student.py"
            node.metadata_props.add(key="stack", value="home/me/student.py")
        return model.SerializeToString()

    monkeypatch.setattr(OnnxExporter, "_trace", talkative)
    model = OnnxExporter(opset=opset, size=32).export(student)
    assert not model.metadata_props
    assert not any(n.doc_string or n.metadata_props for n in model.graph.node)
    assert b"home/me" not in model.SerializeToString()
    assert str(Path(__file__).parents[2]).encode() not in model.SerializeToString()


def test_leaves_the_student_as_it_was(student):
    before = copy.deepcopy(student.state_dict())
    OnnxExporter(size=32).export(student)
    assert all(torch.equal(before[k], v) for k, v in student.state_dict().items())


def test_tiny_weights_are_flushed_and_the_output_stays(student, tmp_path):
    sick = copy.deepcopy(student)
    with torch.no_grad():
        for p in sick.parameters():
            if p.dim() == 4:
                p[::2, ::2] *= 1e-38  # subnormal, as coupled weight decay leaves them
    onnx.save(OnnxExporter(size=64).export(sick), tmp_path / "s.onnx")
    values = np.concatenate([w.ravel() for w in weights(onnx.load(tmp_path / "s.onnx"))])
    assert not ((values != 0) & (np.abs(values) < FLUSH)).any()
    assert (values == 0).sum() > 1000
    assert parity(tmp_path / "s.onnx", sick, torch.rand(1, 3, 64, 64)) <= 1e-4


def test_flush_by_hand():
    values = np.array([1e-21, -1e-40, 0.0, 1e-19, -2.0, 9.9e-21], np.float32)
    whole = np.array([0, 1], np.int64)
    graph = helper.make_graph(
        [], "g", [], [], [numpy_helper.from_array(values, "w"), numpy_helper.from_array(whole, "i")]
    )
    model = helper.make_model(graph)
    assert flush_subnormals(model) == 3
    assert flush_subnormals(model) == 0
    after = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    np.testing.assert_array_equal(after["w"], np.array([0, 0, 0, 1e-19, -2, 0], np.float32))
    np.testing.assert_array_equal(after["i"], whole)
    assert after["w"].dtype == np.float32


@pytest.mark.parametrize("name", zoo.shipped())
def test_axes_of_a_shipped_file_name_their_multiple(name):
    graph = onnx.load(zoo.find(name)).graph
    free, fixed = ["batch", 3, "32*height", "32*width"], [1, 3, 256, 256]
    assert all(sides(value) in (free, fixed) for value in (*graph.input, *graph.output))


@pytest.mark.parametrize("opset", [9, 11, 17])
def test_dynamic_takes_any_size_and_batch(student, tmp_path, opset):
    model = OnnxExporter(opset=opset, size=64, dynamic=True).export(student)
    onnx.save(model, tmp_path / "d.onnx")
    assert sides(model.graph.input[0]) == ["batch", 3, "32*height", "32*width"]
    for shape in ((1, 3, 64, 64), (2, 3, 96, 160)):
        photo = torch.rand(shape)
        with torch.no_grad():
            expected = student(photo).numpy()
        np.testing.assert_allclose(run(tmp_path / "d.onnx", photo), expected, atol=1e-4)


def test_static_takes_its_own_size_only(student, tmp_path):
    onnx.save(OnnxExporter(size=32).export(student), tmp_path / "s.onnx")
    assert run(tmp_path / "s.onnx", torch.rand(1, 3, 32, 32)).shape == (1, 3, 32, 32)
    with pytest.raises(Exception, match="invalid dimensions"):
        run(tmp_path / "s.onnx", torch.rand(1, 3, 64, 64))


class Spectrum(nn.Module):
    def forward(self, photo):
        return torch.fft.irfft2(torch.fft.rfft2(photo))


def test_a_network_that_the_opset_cannot_hold():
    with pytest.raises(DistillError, match=r"^exporter.opset=17: cannot hold .*fft_rfft2"):
        OnnxExporter(opset=17, size=64).export(Spectrum())


def test_parity_is_the_largest_gap(student, tmp_path):
    """Against a network that is off by 0.25 in one corner of the second photo."""

    class Off(nn.Module):
        def forward(self, photos: Tensor) -> Tensor:
            output = student(photos)
            output[1, :, 0, 0] += 0.25
            return output

    onnx.save(OnnxExporter(size=64).export(student), tmp_path / "s.onnx")
    photos = torch.rand(3, 3, 64, 64)
    assert parity(tmp_path / "s.onnx", student, photos) <= 1e-4
    assert parity(tmp_path / "s.onnx", Off(), photos) == pytest.approx(0.25, abs=1e-4)


class Upscale(nn.Module):
    """A convolution, ×2 in some mode, and back."""

    def __init__(self, mode: str) -> None:
        super().__init__()
        self.conv, self.mode = nn.Conv2d(3, 3, 3, 2, 1), mode

    def forward(self, photo: Tensor) -> Tensor:
        return nn.functional.interpolate(self.conv(photo), scale_factor=2.0, mode=self.mode)


@pytest.mark.parametrize(("opset", "kind"), [(9, "Upsample"), (11, "Resize"), (17, "Resize")])
def test_foreign_operators_sees_another_resize(opset, kind):
    exporter = OnnxExporter(opset=opset, size=32)
    assert foreign_operators(exporter.export(Upscale("nearest"))) == []
    bilinear = foreign_operators(exporter.export(Upscale("bilinear")))
    assert bilinear == [f"{kind}(linear)"]


def test_foreign_operators_sees_another_activation():
    network = nn.Sequential(nn.Conv2d(3, 3, 3, 1, 1), nn.LeakyReLU(), nn.Tanh())
    model = OnnxExporter(size=32).export(network)
    assert foreign_operators(model) == ["LeakyRelu", "Tanh"]


def test_equal_tensors_do_not_become_identities(tmp_path):
    """torch writes equal tensors once and reaches them through Identity, which is foreign."""
    network = nn.Sequential(*(nn.Conv2d(3, 3, 1) for _ in range(3)), nn.Sigmoid())
    for layer in network[:3]:
        nn.init.constant_(layer.weight, 0.2)
        nn.init.constant_(layer.bias, 0.1)
    model = OnnxExporter(size=32).export(network)
    assert foreign_operators(model) == []
    onnx.save(model, tmp_path / "same.onnx")
    photo = torch.rand(1, 3, 32, 32)
    assert parity(tmp_path / "same.onnx", network, photo) <= 1e-6
    assert [n.op_type for n in model.graph.node] == ["Conv", "Conv", "Conv", "Sigmoid"]


def transposed(**changed: Any) -> nn.Module:
    plain = {"kernel_size": 2, "stride": 2}
    return nn.ConvTranspose2d(4, 4, **(plain | changed))


def exported(layer: nn.Module, **asked: Any) -> onnx.ModelProto:
    return OnnxExporter(size=32, **asked).export(nn.Sequential(nn.Conv2d(3, 4, 1), layer).eval())


def test_transposed_convolutions_are_a_profile_of_their_own():
    model = exported(transposed())
    assert foreign_operators(model) == ["ConvTranspose"]
    assert foreign_operators(model, "transposed") == []


@pytest.mark.parametrize(
    "changed",
    [
        {"kernel_size": 3},
        {"stride": 1},
        {"kernel_size": 4, "padding": 1},
        {"groups": 2},
        {"kernel_size": 2, "dilation": 2},
        {"kernel_size": 2, "output_padding": 1},
        {"kernel_size": (2, 3), "stride": (2, 3)},
    ],
)
def test_other_transposed_convolutions_are_in_no_profile(changed):
    model = exported(transposed(**changed))
    assert foreign_operators(model, "transposed") == ["ConvTranspose(other than 2×2, stride 2)"]


@pytest.mark.parametrize(
    ("setting", "choices"),
    [
        ("profile", "want one of strict, transposed, global"),
        ("input", "input should be 'float_nchw', 'float_nhwc'"),
    ],
)
def test_an_unknown_choice_is_refused(setting, choices):
    with pytest.raises(DistillError, match=rf"exporter\.{setting}='loose': {choices}"):
        bind("exporter", {"_target_": "distill.export.onnx.OnnxExporter", setting: "loose"})


def test_the_strict_profile_rewrites_them():
    model = exported(transposed(), profile="strict")
    assert foreign_operators(model) == []
    assert "ConvTranspose" not in {node.op_type for node in model.graph.node}


def test_the_strict_profile_keeps_one_size():
    with pytest.raises(DistillError, match=r"exporter\.dynamic=true: .*profile=transposed"):
        exported(transposed(), profile="strict", dynamic=True)
