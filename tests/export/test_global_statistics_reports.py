"""report.json of a student that is told the whole picture, and the files beside it."""

import json
from dataclasses import replace

import pytest
import torch

from distill.config import compose
from distill.config.settings.commands import Export
from distill.config.settings.training import Train
from distill.export.float32_export import export_float32
from distill.export.onnx import OnnxExporter
from distill.export.subject import Subject
from distill.models.build import build_student


@pytest.mark.slow
@pytest.mark.parametrize(
    ("written", "summary"),
    [
        pytest.param({"profile": "global"}, "inside", marks=pytest.mark.campaign),
        ({"profile": "global", "dynamic": True}, "inside"),
        ({"profile": "strict"}, "student_summary.onnx"),
    ],
)
def test_the_base_student_keeps_its_budget(tmp_path, written, summary):
    words = ["style=hayao", "encoder.weights=none", "global_statistics=thumbnail"]
    trained = compose.load("train", [*words, "decoder=detail"], Train)
    student = build_student(trained.encoder, trained.decoder.build, 3, "thumbnail")
    with torch.no_grad():  # a random network's logits are wild, and rounding errors with them
        student.decoder.out.weight *= 0.2
    trained = replace(trained, teacher=None)
    subject = Subject(student.eval(), trained, OnnxExporter(**written))
    photos = torch.rand(1, 3, 256, 256)
    export_float32(subject, compose.load("export", [], Export), photos, tmp_path)
    report = json.loads((tmp_path / "report.json").read_text())
    figures = {check["name"]: check["value"] for check in report["student"]}
    assert report["ok"]
    assert report["summary"] == summary
    assert (tmp_path / "student_summary.onnx").is_file() == (summary != "inside")
    assert figures["MACs"] <= 130e6
    if written.get("dynamic"):
        assert figures["% of MACs that the thumbnail adds at 512²"] <= 15
        assert figures["% of MACs that the thumbnail adds at 1024²"] <= 4
