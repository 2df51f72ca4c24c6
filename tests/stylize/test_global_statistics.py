"""Students that are told the whole picture: taken apart, in tiles, frame after frame."""

import numpy as np
import onnx
import pytest
import torch
from PIL import Image
from skimage import data

from distill.core.errors import DistillError
from distill.core.onnx_files import split_at_summary
from distill.export.onnx import OnnxExporter
from distill.models.students.global_statistics import thumbnail_of
from distill.models.students.student import Student
from distill.stylize import render
from distill.stylize.onnx_student import OnnxStudent
from distill.stylize.stylizing import open_student
from distill_video.smoothing import SmoothSummary
from support.statistics_students import statistics_student


@pytest.fixture(scope="module")
def network():
    return statistics_student()


@pytest.fixture(scope="module", params=["dynamic", "static", "apart"])
def student(request, network):
    if request.param == "apart":
        exporter = OnnxExporter(profile="transposed")
        summary = exporter.export_summary(network)
        return OnnxStudent(exporter.export(network), "apart", 1, summary=summary)
    exporter = OnnxExporter(dynamic=request.param == "dynamic")
    return OnnxStudent(exporter.export(network), request.param, 1)


def test_any_size_and_its_summary_as_in_pytorch(student, network):
    photo = torch.rand(1, 3, 288, 352)
    assert student.takes_summary
    assert student.fixed is None
    with torch.inference_mode():
        expected, summary = network(photo), network.summary(thumbnail_of(photo))
    np.testing.assert_allclose(student(photo.numpy()), expected, atol=1e-4)
    np.testing.assert_allclose(student.summary(photo.numpy()), summary, atol=1e-4)


def test_a_part_is_drawn_by_the_summary_of_the_whole(student, network):
    part, other = torch.rand(1, 3, 64, 96), torch.rand(1, 64, 1, 1)
    with torch.inference_mode():
        expected = network.stylize(part, other)
    np.testing.assert_allclose(student(part.numpy(), other.numpy()), expected, atol=1e-4)


def test_tiles_equal_the_whole(student, monkeypatch):
    monkeypatch.setattr(render, "TILE", 256)
    photo = Image.fromarray(data.astronaut()).crop((0, 0, 500, 400))
    whole = np.asarray(render.stylise_rgb(photo, student), int)
    tiled = np.asarray(render.stylise_rgb(photo, student, upscale="tiles"), int)
    assert np.abs(whole - tiled).max() <= 1


def test_a_large_picture_is_seen_at_1536_and_at_any_size_in_tiles(student, monkeypatch):
    own = (4000, 3000)
    assert render.inference_size(own, student, None, "whole") == (1536, 1152)
    assert render.inference_size(own, student, None, "tiles") == own
    assert render.inference_size(own, student, 4000, "whole") == own
    assert render.inference_size((1200, 900), student, None, "whole") == (1200, 900)
    assert render.inference_size(own, student, 512, "whole") == (512, 384)
    seen = []
    monkeypatch.setattr(render, "PIECE", 100 * 100)
    monkeypatch.setattr(
        render, "stylise_tiled", lambda picture, *_: seen.append(picture.size) or picture
    )
    assert render.stylise_rgb(Image.new("RGB", (120, 100)), student).size == (120, 100)
    assert seen == [(128, 128)]
    render.stylise_rgb(Image.new("RGB", (100, 100)), student)
    assert len(seen) == 1


def test_any_other_network_is_not_taken_apart(network):
    untold = Student(network.encoder, network.decoder)
    model = OnnxExporter().export(untold)
    assert split_at_summary(model) is None
    assert not OnnxStudent(model, "untold", 1).takes_summary


def test_the_file_of_the_second_input_lies_beside(network, tmp_path):
    exporter = OnnxExporter(profile="transposed")
    onnx.save(exporter.export(network), tmp_path / "student.onnx")
    with pytest.raises(DistillError, match=r"computed by student_summary.onnx, which is not besid"):
        open_student(tmp_path / "student.onnx", 1)
    onnx.save(exporter.export_summary(network), tmp_path / "student_summary.onnx")
    assert open_student(tmp_path / "student.onnx", 1).takes_summary


def test_summaries_are_mixed_within_a_scene_only():
    given = iter([1.0, 1.0, 1.01, 5.0])
    smooth = SmoothSummary(lambda _: np.full((1, 2, 1, 1), next(given), np.float32), 0.5)
    values = [float(smooth(np.zeros(0))[0, 0, 0, 0]) for _ in range(4)]
    # A change of 1 % is halved, the next scene is its own: exp(-(0.8 / 0.2)²) is 1e-7.
    assert values == pytest.approx([1.0, 1.0, 1.005, 5.0], abs=1e-4)
