"""Files of students that are told the whole picture, ONNX and others, against PyTorch."""

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import Tensor, nn

from distill.core.errors import DistillError
from distill.core.images import to_tensor
from distill.core.onnx_files import GLOBAL_STATISTICS, noted
from distill.core.sessions import open_session
from distill.core.state_dicts import tensors_in_graph
from distill.data.photos import centre_square, demo_photos, read_photo
from distill.export.coreml import CoreML
from distill.export.format import ConversionSource, ConvertedFormat
from distill.export.fp16 import Float16
from distill.export.graph.operator_sets import foreign_operators
from distill.export.int8 import Int8
from distill.export.ncnn import Ncnn
from distill.export.onnx import OnnxExporter, parity
from distill.export.tflite import TfLite
from distill.export.whole_picture import Thumbnailed
from distill.hub.published_student import PublishedStudent
from distill.metrics.complexity import graph_macs
from distill.metrics.similarity import psnr
from distill.models.batchnorm import fold_batchnorm
from distill.models.students.decoders.detail import Detail
from distill.models.students.decoders.nnconv import NNConv
from distill.models.students.encoder import MobileNetV2Encoder
from distill.models.students.student import Student, global_statistics
from support.export_photos import output_of

STATISTICS = {"GlobalAveragePool"}


@pytest.fixture(scope="module", params=[Detail, NNConv])
def student(request, lively):
    """A folded one, small, whose statistics change the picture."""
    torch.manual_seed(4)
    encoder = MobileNetV2Encoder(0.35, weights="none")
    decoder = request.param(encoder.channels, encoder.strides)
    statistics = global_statistics(encoder, decoder)
    for layer in [*statistics.gains, *statistics.biases]:
        nn.init.normal_(layer.weight, std=0.02)
    with torch.no_grad():  # a random network's logits are wild, and rounding errors with them
        decoder.out.weight *= 0.2
    folded = fold_batchnorm(lively(Student(encoder, decoder, statistics)))
    assert isinstance(folded, Student)
    return folded


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


@pytest.mark.parametrize("profile", ["strict", "transposed"])
@pytest.mark.parametrize("side", [128, 256])
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


@pytest.fixture(scope="module")
def told():
    """A trained one: where weights are random, a rounding error is seen."""
    shipped = PublishedStudent.shipped("hayao-small")
    trained = shipped.student
    about = '{"style": "hayao", "version": "1", "weights": "0"}'
    exporter = OnnxExporter(opset=11, size=256, profile="global", about=about)
    return ConversionSource(trained, exporter, 3, crops, trained, shipped.description)


def crops() -> Tensor:
    """Forty of scikit-image's photographs but the astronaut, at several sizes."""
    generator = torch.Generator().manual_seed(1)
    found = []
    for photo in demo_photos()[:-1]:
        for size in torch.randint(256, 400, (8,), generator=generator).tolist():
            square = to_tensor(centre_square(read_photo(photo.path), size))
            top, left = torch.randint(0, size - 255, (2,), generator=generator).tolist()
            found.append(square[:, top : top + 256, left : left + 256])
    return torch.stack(found)


def astronaut() -> Tensor:
    return to_tensor(centre_square(read_photo(demo_photos()[-1].path), 256))[None]


def difference(converted: ConvertedFormat, source: ConversionSource, folder: Path) -> float:
    """The largest, of one photo's output in the format's runtime to PyTorch's."""
    converted.convert(source, folder)
    run = converted.open(folder)
    assert run is not None
    photo, (input_form, output_form) = astronaut(), converted.forms(source.exporter)
    made = output_form.decode(run(input_form.encode(photo.numpy())))
    return float(np.abs(made - output_of(source.folded, photo).numpy()).max())


@pytest.mark.slow
def test_half_precision(told, tmp_path):
    assert difference(Float16(), told, tmp_path) <= 2 / 255


@pytest.mark.slow
def test_int8_keeps_its_limit(told, tmp_path):
    Int8().convert(told, tmp_path)
    got = torch.from_numpy(Int8().open(tmp_path)(astronaut().numpy()))
    assert psnr(got, output_of(told.folded, astronaut())) >= Int8.least[0]


@pytest.mark.slow
def test_ncnn(told, tmp_path):
    for package in ("pnnx", "ncnn"):
        pytest.importorskip(package, reason="the extra distill[ncnn] is not installed")
    assert difference(Ncnn(), told, tmp_path) <= 2 / 255


@pytest.mark.slow
@pytest.mark.skipif(
    "DISTILL_LITERT_PYTHON" not in os.environ,
    reason="no DISTILL_LITERT_PYTHON, an interpreter with litert-torch",
)
def test_tflite(told, tmp_path):
    pytest.importorskip("ai_edge_litert", reason="the extra distill[tflite] is not installed")
    python = os.environ["DISTILL_LITERT_PYTHON"]
    assert difference(TfLite(), replace(told, python=python), tmp_path) <= 2 / 255


@pytest.mark.slow
def test_core_ml_pools_for_its_statistics(told, tmp_path):
    ct = pytest.importorskip("coremltools", reason="the extra distill[coreml] is not installed")
    CoreML().convert(told, tmp_path)
    package = str(tmp_path / "student.mlpackage")
    spec = ct.models.MLModel(package, skip_model_load=True).get_spec()
    (block,) = spec.mlProgram.functions["main"].block_specializations.values()
    done = Counter(operation.type for operation in block.operations)
    assert done["reduce_mean"] + done["avg_pool"] == 4
    assert done["conv"] == sum(map(_convolves, told.folded.modules())) + 1  # the 4×4 averages


def test_the_graph_that_goes_to_another_interpreter(told):
    """It is traced without values: which way a photo goes must not hang on its size."""
    graph = torch.fx.symbolic_trace(TfLite().traceable(told))
    made = graph(astronaut().permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
    torch.testing.assert_close(made, output_of(told.folded, astronaut()))


@pytest.mark.parametrize("sides", [(64, 96), (512, 320)])
def test_a_thumbnail_by_two_products(told, sides):
    photo = picture(*sides)
    assert isinstance(told.folded, Student)
    made = Thumbnailed(told.folded, sides)(photo)
    torch.testing.assert_close(made, output_of(told.folded, photo), atol=1e-5, rtol=0)


@pytest.mark.parametrize("converted", [CoreML, Ncnn, TfLite])
def test_a_thumbnail_of_any_size_is_refused(converted, told):
    other = replace(told, exporter=replace(told.exporter, dynamic=True, opset=18))
    expected = rf"^{converted.name}: has no resize of any size .* take exporter.size="
    with pytest.raises(DistillError, match=expected):
        converted().traceable(other)


def _convolves(module: nn.Module) -> bool:
    return isinstance(module, nn.Conv2d)
