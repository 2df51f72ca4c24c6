"""Large outputs: their lines from the large picture, their colours from the side learnt at."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from skimage import data
from torch import Tensor, nn

from distill.config.settings.networks import StyleSettings
from distill.core import onnx_files
from distill.export.fp16 import halved
from distill.export.onnx import OnnxExporter
from distill.models import network_file, zoo
from distill.models.teachers.animegan2 import AnimeGANv2
from distill.stylize import render
from distill.stylize.onnx_student import OnnxStudent
from distill_drawings.toon import Toon
from support.statistics_students import PLAIN
from support.students_on_file import STYLE, settings_of_student

SIDE = 64
GREY = 160


class Bordered(nn.Module):
    """The mean of what is near, nothing counting as black: brighter where the border is far."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.AvgPool2d(SIDE + 1, 1, SIDE // 2)

    def forward(self, x: Tensor) -> Tensor:
        return (x + self.pool(x)) / 2


def student(colours_at: int | None = None, dynamic: bool = False) -> OnnxStudent:
    exporter = OnnxExporter(size=SIDE, colours_at=colours_at, dynamic=dynamic)
    return OnnxStudent(exporter.export(Bordered()), "network", 1)


def values(image: Image.Image) -> NDArray[Any]:
    return np.asarray(image).astype(float)


def plane(size: int, left: float, right: float) -> Image.Image:
    row = np.linspace(left, right, size).round().astype(np.uint8)
    return Image.fromarray(np.broadcast_to(row[None, :, None], (size, size, 3)).copy())


def chessboard(size: int, depth: int) -> NDArray[Any]:
    return depth * (np.indices((size, size)).sum(0) % 2 * 2.0 - 1)[..., None]


# Two outputs to one


def test_what_is_wide_comes_from_the_small_output_and_what_is_fine_from_the_large_one():
    fine = chessboard(512, 20)
    large = Image.fromarray((values(plane(512, 100, 180)) + fine).astype(np.uint8))
    small = plane(256, 150, 60)
    made = values(render.recolour(large, small))
    inner = slice(64, -64)  # within a cell of the border a slope cannot be told from a level
    wanted = values(plane(512, 150, 60)) + fine
    assert np.abs(made - wanted)[:, inner].max() <= 2


def test_what_is_see_through_is_that_of_the_large_output():
    large = Image.fromarray(data.astronaut()).convert("RGBA")
    large.putalpha(Image.fromarray(data.camera()))
    made = render.recolour(large, Image.new("RGBA", (128, 128), (200, 100, 50, 0)))
    assert made.mode == "RGBA"
    assert np.array_equal(np.asarray(made)[..., 3], data.camera())
    assert np.allclose(values(made)[..., :3].mean((0, 1)), (200, 100, 50), atol=12)  # clipped


def test_strips_leave_no_seam(monkeypatch):
    large = Image.fromarray(data.astronaut())
    small = Image.fromarray(data.astronaut()[::2, ::2, ::-1].copy())
    whole = values(render.recolour(large, small))
    monkeypatch.setattr(render, "STRIP", 37)
    assert np.abs(values(render.recolour(large, small)) - whole).max() <= 1


# Networks


@pytest.mark.parametrize(("upscale", "dynamic"), [("whole", True), ("tiles", False)])
@pytest.mark.slow
def test_a_large_output_has_the_colours_of_the_side_learnt_at(upscale, dynamic, monkeypatch):
    monkeypatch.setattr(render, "TILE", 128)
    photo = Image.new("RGB", (320, 256), (GREY,) * 3)
    right = values(render.stylise_rgb(photo.resize((SIDE, 51)), student())).mean()
    own = values(render.stylise_rgb(photo, student(), 320, upscale)).mean()
    made = values(render.stylise_rgb(photo, student(SIDE, dynamic), 320, upscale)).mean()
    assert own - right > 4
    assert abs(made - right) <= 1


@pytest.mark.parametrize("text", ["", "large", "-64", "3", "9" * 5000])
def test_metadata_that_makes_no_sense_is_ignored(text):
    model = OnnxExporter(size=SIDE).export(Bordered())
    onnx_files.note(model, onnx_files.COLOURS_AT, text)
    assert OnnxStudent(model, "network", 1).colours_at is None


# Who says so


def test_a_note_is_kept_once_and_in_half_precision_too():
    model = OnnxExporter(size=SIDE, colours_at=SIDE).export(Bordered())
    onnx_files.note(model, onnx_files.COLOURS_AT, 96)
    assert len(model.metadata_props) == 1
    onnx.checker.check_model(model, full_check=True)
    assert onnx_files.noted(halved(model), onnx_files.COLOURS_AT) == "96"
    assert onnx_files.noted(onnx.ModelProto(), onnx_files.COLOURS_AT) is None


@pytest.mark.parametrize(("teacher", "side"), [(AnimeGANv2, 192), (Toon, None)])
def test_only_a_teacher_that_normalises_ties_colours_to_a_side(teacher, side):
    photo = torch.from_numpy(data.astronaut()).permute(2, 0, 1)[None, :, ::4, ::4] / 255
    network = teacher().eval()
    other = photo.clone()
    other[..., 64:] = 0.0  # what is far from the left columns
    with torch.inference_mode():
        moved = (network(photo) - network(other))[..., :16].abs().mean()
    assert teacher.normalises == (moved > 1e-3)
    node = {"_target_": f"{teacher.__module__}.{teacher.__name__}"}
    style = StyleSettings(**(STYLE | {"resolution": 192}))
    trained = settings_of_student(teacher=node, style=style)
    assert network_file.colours_at(trained) == side
    told = replace(trained, global_statistics="thumbnail")  # right at every size by itself
    assert network_file.colours_at(told) is None


def test_no_shipped_student_needs_colours_of_another_size():
    """hayao, whose teacher normalises over the picture, is told the whole picture instead."""
    for name, path in zoo.shipped().items():
        student = OnnxStudent(onnx_files.load_model(path), name, 1)
        assert student.colours_at is None
        assert student.takes_summary == (name not in PLAIN)
