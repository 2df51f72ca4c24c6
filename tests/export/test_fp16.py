from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, numpy_helper

from distill.core.onnx_files import split_at_summary
from distill.export.format import ConversionSource
from distill.export.fp16 import Float16, halved
from distill.export.onnx import OnnxExporter
from distill.metrics.similarity import psnr
from support.export_photos import output_of, photos
from support.told_students import told_student


def test_half_inside_float_outside(source: ConversionSource, tmp_path: Path) -> None:
    Float16().convert(source, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["student_fp16.onnx"]
    model = onnx.load(tmp_path / "student_fp16.onnx")
    ends = [*model.graph.input, *model.graph.output]
    assert {v.type.tensor_type.elem_type for v in ends} == {TensorProto.FLOAT}
    weights = [numpy_helper.to_array(t) for t in model.graph.initializer]
    assert {w.dtype for w in weights if w.ndim == 4} == {np.dtype(np.float16)}
    kinds = [node.op_type for node in model.graph.node]
    assert "Upsample" not in kinds  # opset 9 was asked for; its Upsample cannot be halved
    assert kinds.count("Cast") >= 2
    count = sum(p.numel() for p in source.folded.parameters())
    assert (tmp_path / "student_fp16.onnx").stat().st_size < 2 * count + 60_000


def test_its_output_is_that_of_pytorch(source: ConversionSource, tmp_path: Path) -> None:
    Float16().convert(source, tmp_path)
    run = Float16().open(tmp_path)
    got = torch.cat([torch.from_numpy(run(p[None].numpy())) for p in photos(4)])
    assert got.dtype == torch.float32
    assert psnr(got, output_of(source.folded, photos(4))).min() >= 55


def test_both_parts_of_a_student_told_the_whole_picture_exchange_float32() -> None:
    model = halved(OnnxExporter(dynamic=True).export(told_student()))
    photo = np.random.default_rng(0).random((1, 3, 96, 64), np.float32)
    whole = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"photo": photo})[0]
    parts = split_at_summary(model)
    assert parts is not None
    told, stylize = (onnxruntime.InferenceSession(part.SerializeToString()) for part in parts)
    summary = told.run(None, {"photo": photo})[0]
    assert summary.dtype == np.float32
    output = stylize.run(None, {"photo": photo, "summary": summary})[0]
    np.testing.assert_allclose(output, whole, atol=1e-3)
