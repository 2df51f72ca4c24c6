"""Files of students that are told the whole picture, ONNX and others, against PyTorch."""

import numpy as np
import onnx
import pytest
import torch
from torch import Tensor, nn

from distill.api import student_network
from distill.core.errors import DistillError
from distill.core.onnx_files import GLOBAL_STATISTICS, noted
from distill.core.sessions import open_session
from distill.core.state_dicts import tensors_in_graph
from distill.export.fp16 import Float16
from distill.export.graph.operator_gate import foreign_operators
from distill.export.int8 import Int8
from distill.export.onnx import OnnxExporter, parity
from distill.export.whole_picture import Thumbnailed
from distill.metrics.complexity import graph_macs
from distill.metrics.similarity import psnr
from distill.models.students.decoders.detail import Detail
from distill.models.students.decoders.nnconv import NNConv
from distill.models.students.student import Student
from support.export_photos import output_of
from support.export_trials import astronaut, difference
from support.statistics_students import statistics_student

STATISTICS = {"GlobalAveragePool"}


@pytest.fixture(scope="module", params=[Detail, pytest.param(NNConv, marks=pytest.mark.campaign)])
def student(request, lively):
    """A folded one, small, whose statistics change the picture."""
    return statistics_student(4, request.param, 0.02, lively)


def picture(height: int, width: int) -> Tensor:
    return torch.rand(1, 3, height, width, generator=torch.Generator().manual_seed(height))


def kinds(model: onnx.ModelProto) -> set[str]:
    return {node.op_type for node in model.graph.node}


def outputs_of(model: onnx.ModelProto, name: str) -> list[str]:
    return [output for node in model.graph.node for output in node.output if output == name]


def check_contract(model: onnx.ModelProto) -> None:
    assert [value.name for value in model.graph.input] == ["photo"]
    assert [value.name for value in model.graph.output] == ["stylized"]
    assert outputs_of(model, "summary") == ["summary"]
    assert noted(model, GLOBAL_STATISTICS) == "thumbnail"
    assert foreign_operators(model, "global") == []


@pytest.mark.slow
def test_one_file_for_any_size(student):
    model = OnnxExporter(dynamic=True).export(student)
    check_contract(model)
    assert kinds(model) >= STATISTICS
    assert model.opset_import[0].version == 18
    session = open_session(model, threads=1)
    # Larger than the thumbnail, as large, smaller, and both.
    for height, width in ((256, 256), (512, 384), (1024, 768), (64, 96), (128, 512)):
        photo = picture(height, width)
        with torch.inference_mode():
            expected = student(photo).numpy()
        got = session.run(["stylized"], {"photo": photo.numpy()})[0]
        np.testing.assert_allclose(got, expected, atol=1e-4)


@pytest.mark.slow
def test_the_static_file_of_256_looks_once(student, tmp_path):
    model = OnnxExporter(opset=9).export(student)
    check_contract(model)
    untold = OnnxExporter(opset=9).export(Student(student.encoder, student.decoder))
    told = sum(conv.weight.numel() for conv in student.statistics.modules() if _convolves(conv))  # type: ignore[union-attr]
    averages = 3 * 256**2  # of 4×4 pixels of each colour; the others are of 1×1 values each
    assert graph_macs(model) == graph_macs(untold) + told + averages
    onnx.save(model, tmp_path / "s.onnx")
    assert parity(tmp_path / "s.onnx", student, picture(256, 256)) <= 1e-4


@pytest.mark.slow
def test_another_static_size_has_the_thumbnail_inside(student, tmp_path):
    model = OnnxExporter(size=96).export(student)
    check_contract(model)
    onnx.save(model, tmp_path / "s.onnx")
    assert parity(tmp_path / "s.onnx", student, picture(96, 96)) <= 1e-4


@pytest.mark.parametrize(("profile", "side"), [("strict", 256), ("transposed", 128)])
@pytest.mark.slow
def test_the_strict_file_is_told_by_another(student, tmp_path, profile, side):
    exporter = OnnxExporter(opset=9, size=side, profile=profile)  # type: ignore[arg-type]
    model, summary = exporter.export(student), exporter.export_summary(student)
    assert [value.name for value in model.graph.input] == ["photo", "summary"]
    assert foreign_operators(model, profile) == []  # type: ignore[arg-type]
    assert [value.name for value in summary.graph.input] == ["photo"]
    assert [value.name for value in summary.graph.output] == ["summary"]
    assert foreign_operators(summary, "strict") == sorted(STATISTICS)
    onnx.save(model, tmp_path / "s.onnx")
    onnx.save(summary, tmp_path / "s_summary.onnx")
    photo = picture(side, side)
    assert parity(tmp_path / "s.onnx", student, photo, tmp_path / "s_summary.onnx") <= 1e-4


@pytest.mark.slow
def test_weights_keep_their_names(student, tmp_path):
    """So that training can start from the file; equal ones, as zeros here, are stored once."""
    onnx.save(OnnxExporter(dynamic=True).export(student), tmp_path / "d.onnx")
    own = student.state_dict()
    for name, values in tensors_in_graph(tmp_path / "d.onnx").items():
        assert torch.equal(own[name], values)


def test_an_opset_without_antialiasing(student):
    with pytest.raises(DistillError, match=r"^exporter.opset=11: .* opset 18; leave it out"):
        OnnxExporter(opset=11, dynamic=True).export(student)


def test_linear_resizing_is_for_thumbnails_only(student):
    model = OnnxExporter(dynamic=True).export(student)
    assert "Resize(linear)" in foreign_operators(model, "transposed")
    (resize,) = [n for n in model.graph.node if n.name == "thumbnail"]
    (antialias,) = [a for a in resize.attribute if a.name == "antialias"]
    antialias.i = 0
    assert foreign_operators(model, "global") == ["Resize(linear)"]


@pytest.mark.slow
def test_half_precision(told, tmp_path):
    assert difference(Float16(), told, tmp_path) <= 2 / 255


@pytest.mark.campaign
def test_int8_keeps_its_limit(told, tmp_path):
    Int8().convert(told, tmp_path)
    got = torch.from_numpy(Int8().open(tmp_path)(astronaut().numpy()))
    assert psnr(got, output_of(told.folded, astronaut())) >= Int8.least[0]


@pytest.mark.parametrize("sides", [(64, 96), (512, 320), (512, 256), (768, 1024)])
def test_a_thumbnail_by_products_or_a_strided_convolution(told, sides):
    photo = picture(*sides)
    assert isinstance(told.folded, Student)
    made = Thumbnailed(told.folded, sides)(photo)
    torch.testing.assert_close(made, output_of(told.folded, photo), atol=1e-5, rtol=0)


def _convolves(module: nn.Module) -> bool:
    return isinstance(module, nn.Conv2d)


def test_the_macs_of_predicted_inks_are_known_at_any_opset():
    network = student_network("poster").student
    macs = {graph_macs(OnnxExporter(opset=opset).export(network)) for opset in (None, 11, 13)}
    assert len(macs) == 1
