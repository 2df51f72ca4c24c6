from dataclasses import replace

import numpy as np
import onnx
import pytest
import torch

from distill.config.settings.commands import TakesOnnxFiles
from distill.core.licence_terms import NOTE, read_terms
from distill.core.onnx_files import noted
from distill.core.sessions import open_session, picture_call
from distill.export.uint8 import Uint8
from distill.metrics.similarity import psnr
from distill.stylize.stylizing import open_student
from support.export_photos import output_of, photos


def test_bytes_in_and_out_are_those_of_the_float_network(source, tmp_path):
    Uint8().convert(source, tmp_path)
    model = onnx.load(tmp_path / "student_uint8.onnx")
    assert [value.name for value in (*model.graph.input, *model.graph.output)] == [
        "photo",
        "stylized",
    ]
    assert read_terms(noted(model, NOTE)).commercial == "no"
    pixels = np.random.default_rng(0).integers(0, 256, (1, 64, 64, 3), np.uint8)
    output = picture_call(open_session(model, 1))(pixels)
    network = picture_call(open_session(source.exporter.export(source.folded), 1))
    exact = network(pixels.transpose(0, 3, 1, 2).astype(np.float32) / 255).transpose(0, 2, 3, 1)
    assert output.dtype == np.uint8
    assert np.abs(output - np.clip(255 * exact, 0, 255)).max() <= 0.5 + 1e-3  # rounded, not cut off


def test_out_of_range_is_clipped_and_not_wrapped(source, tmp_path):
    class Bright(torch.nn.Module):
        def forward(self, photo):
            return 4 * photo - 1.5

    Uint8().convert(replace(source, folded=Bright()), tmp_path)
    pixels = np.zeros((1, 64, 64, 3), np.uint8)
    pixels[:, 32:] = 255
    output = picture_call(open_session(tmp_path / "student_uint8.onnx", 1))(pixels)
    assert (output[:, :32] == 0).all()
    assert (output[:, 32:] == 255).all()


@pytest.mark.parametrize("dynamic", [False, True])
def test_its_figures_and_stylize(source, tmp_path, dynamic):
    exporter = replace(source.exporter, dynamic=dynamic, profile="any", opset=11)
    Uint8().convert(replace(source, exporter=exporter), tmp_path)
    pictures = (photos(4) * 255).round() / 255  # as a bitmap has them
    run, expected = Uint8().open(tmp_path), output_of(source.folded, pictures)
    given = (pictures * 255).round().byte().permute(0, 2, 3, 1).numpy()
    made = np.concatenate([run(each[None]) for each in given])
    got = torch.from_numpy(made).permute(0, 3, 1, 2) / 255
    assert psnr(got, expected).min() >= Uint8.least[0]
    student = open_student(tmp_path / "student_uint8.onnx", convention=TakesOnnxFiles())
    np.testing.assert_allclose(student(pictures[:1].numpy()), got[:1], atol=1.01 / 255)
