"""Where devices refuse a student that is told the whole picture, and what they advise."""

import onnx
import pytest
import torch

from distill.check.nnapi_profile import PROFILE as NNAPI
from distill.check.onnx_graph import read
from distill.check.snapml_profile import PROFILE as SNAPML
from distill.export.onnx import OnnxExporter
from distill.models.students.decoders.detail import Detail
from distill.models.students.encoder import MobileNetV2Encoder
from distill.models.students.student import Student, global_statistics
from distill_formats.coreml_profile import PROFILE as COREML


@pytest.fixture(scope="module")
def student():
    torch.manual_seed(0)
    encoder = MobileNetV2Encoder(0.35, "none")
    decoder = Detail(encoder.channels, encoder.strides)
    return Student(encoder, decoder, global_statistics(encoder, decoder)).eval()


@pytest.mark.parametrize(
    ("profile", "refused"),
    [(SNAPML, {"GlobalAveragePool"}), (COREML, set()), (NNAPI, {"ConvTranspose"})],
)
@pytest.mark.slow
def test_the_strict_file_is_advised(student, tmp_path, profile, refused):
    for dynamic in (False, True):
        path = tmp_path / "student.onnx"
        onnx.save(OnnxExporter(dynamic=dynamic).export(student), path)
        advised = {f for f in profile.check(read(path)) if "exporter.profile=strict" in f.advice}
        assert {f.operator for f in advised if "not in the profile" in f.what} == refused
        assert any(f.operator == "Resize" and f.node == "thumbnail" for f in advised) == dynamic
    onnx.save(OnnxExporter(profile="transposed", opset=11).export(student), path)
    found = profile.check(read(path))
    assert not {f.operator for f in found} & {"GlobalAveragePool", "Resize"}
