import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, numpy_helper

from distill.api import student_network
from distill.core.images import to_tensor
from distill.core.licence_terms import NOTE, read_terms
from distill.core.onnx_files import noted, split_at_summary
from distill.data.photos import centre_square, demo_photos, read_photo
from distill.export.fp16 import Float16, halved
from distill.export.onnx import OnnxExporter
from distill.metrics.similarity import psnr
from support.export_photos import output_of, photos
from support.statistics_students import statistics_student


def test_half_inside_float_outside(source, tmp_path):
    Float16().convert(source, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["student_fp16.onnx"]
    model = onnx.load(tmp_path / "student_fp16.onnx")
    ends = [*model.graph.input, *model.graph.output]
    assert {v.type.tensor_type.elem_type for v in ends} == {TensorProto.FLOAT}
    assert read_terms(noted(model, NOTE)).commercial == "no"
    weights = [numpy_helper.to_array(t) for t in model.graph.initializer]
    assert {w.dtype for w in weights if w.ndim == 4} == {np.dtype(np.float16)}
    kinds = [node.op_type for node in model.graph.node]
    assert "Upsample" not in kinds  # opset 9 was asked for; its Upsample cannot be halved
    assert kinds.count("Cast") >= 2
    count = sum(p.numel() for p in source.folded.parameters())
    assert (tmp_path / "student_fp16.onnx").stat().st_size < 2 * count + 60_000


def test_its_output_is_that_of_pytorch(source, tmp_path):
    Float16().convert(source, tmp_path)
    student = Float16().open(tmp_path)
    got = torch.cat([torch.from_numpy(student(p[None].numpy())) for p in photos(4)])
    assert got.dtype == torch.float32
    assert psnr(got, output_of(source.folded, photos(4))).min() >= 55


def test_both_parts_of_a_student_told_the_whole_picture_exchange_float32():
    model = OnnxExporter(dynamic=True).export(statistics_student())
    half, photo = halved(model), photos(1).numpy()
    whole = run(half, photo=photo)
    exact = torch.from_numpy(run(model, photo=photo))
    assert psnr(torch.from_numpy(whole), exact).item() >= Float16.least[0]
    parts = split_at_summary(half)
    assert parts is not None
    summary = run(parts[0], photo=photo)
    assert summary.dtype == np.float32
    output = run(parts[1], photo=photo, summary=summary)
    np.testing.assert_allclose(output, whole, atol=1e-3)  # the same half-precision arithmetic


@pytest.mark.slow
@pytest.mark.parametrize("name", ["astronaut", "rocket"])
def test_inks_are_chosen_in_float32(name):
    """In half precision k-means begins with other colours: 41 and 55 dB."""
    model = OnnxExporter(dynamic=True).export(student_network("poster").student)
    (path,) = (each.path for each in demo_photos() if each.path.stem == name)
    photo = to_tensor(centre_square(read_photo(path), 512))[None].numpy()
    made, exact = (torch.from_numpy(run(each, photo=photo)) for each in (halved(model), model))
    assert psnr(made, exact).item() >= 65


def run(model: onnx.ModelProto, **given: np.ndarray) -> np.ndarray:
    """In ONNX Runtime, which takes no file whose types do not fit."""
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, given)[0]
