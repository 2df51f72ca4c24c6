"""Pictures and networks that distill.stylize cannot use: one clear line each, the rest goes on."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from PIL import Image

from distill.core.errors import DistillError
from distill.stylize import __main__ as stylize
from distill.stylize.onnx_student import OnnxStudent
from support.commands import run
from support.stylize_setup import close, files, pixels, put


def lines(text):
    """What was said, without the progress bar that shares the line's beginning."""
    parts = text.replace("\r", "\n").splitlines()
    return [part.strip() for part in parts if part.strip() and "pictures/s" not in part]


@pytest.mark.parametrize("upscale", ["whole", "tiles", "guided"])
def test_the_smallest_and_the_longest(shipped_students, upscale):
    put("dot.png", Image.new("RGB", (1, 1), (10, 20, 30)))
    put("line.png", Image.new("RGB", (20_000, 4), (10, 20, 30)))
    assert run(stylize, "dot.png", "line.png", f"upscale={upscale}") == 0
    for name, shape in (("dot", (1, 1, 3)), ("line", (4, 20_000, 3))):
        stylised = pixels(f"stylized/{name}-hayao.png")
        assert close(stylised, np.full(shape, (245, 235, 225)), 1)


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP"])
def test_of_an_animation_the_first_picture_and_said(shipped_students, kind, capsys):
    first, second = Image.new("RGB", (40, 30), (200, 0, 0)), Image.new("RGB", (40, 30), (0, 0, 200))
    name = f"film.{kind.lower()}"
    options = {"lossless": True} if kind == "WEBP" else {}
    put(name, first, format=kind, save_all=True, append_images=[second, first], **options)
    assert run(stylize, name, "-o", "out.png") == 0
    assert capsys.readouterr().err == f"'{name}': the first of its 3 pictures is stylised\n"
    assert close(pixels("out.png"), np.full((30, 40, 3), (55, 255, 255)), 1)


def test_a_still_gif_is_nothing_to_speak_of(shipped_students, capsys):
    put("still.gif")
    assert run(stylize, "still.gif") == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("typed", ["-o closed/", "-o closed/deeper", "-o a.png/"])
def test_an_output_folder_that_cannot_be_written(shipped_students, typed, capsys):
    put("a.png")
    put("b.png")
    Path("closed").write_text("a file in the way")
    assert run(stylize, "a.png", "b.png", *typed.split()) == 1
    said = lines(capsys.readouterr().err)
    assert len(said) == 1
    assert "cannot be written" in said[0]
    place = shipped_students / "closed" if "deeper" in typed else typed[3:].rstrip("/")
    assert said[0].startswith(f"error: {place}: ")
    assert files() == ["a.png", "b.png", "closed"]


def test_one_folder_of_many_that_cannot_be_written(shipped_students, capsys):
    put("in/a.png")
    put("in/sub/b.png")
    Path("out").mkdir()
    Path("out/sub").write_text("a file in the way")
    assert run(stylize, "in", "-o", "out") == 1
    said = lines(capsys.readouterr().err)
    assert said[0].startswith("skipped 'in/sub/b.png': 'out/sub/b-hayao.png' cannot be written (")
    assert said[1] == "error: 1 of 2 pictures skipped"
    assert files("out") == ["a-hayao.png", "sub"]


# Networks


def network(shape, kind=TensorProto.FLOAT):
    """A graph that hands its input on."""
    ends = [helper.make_tensor_value_info(name, kind, shape) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", ends[:1], ends[1:])
    opset = helper.make_opsetid("", 13)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


LAYOUTS = {
    "its input is float32 (1, 1, 256, 256)": network([1, 1, 256, 256]),
    "its input is float32 (8, 3, 256, 256)": network([8, 3, 256, 256]),
    "its input is float32 (3, 256, 256)": network([3, 256, 256]),
}


@pytest.mark.parametrize("said", LAYOUTS)
def test_another_layout(shipped_students, said, capsys):
    onnx.save(LAYOUTS[said], "other.onnx")
    put("a.png")
    assert run(stylize, "a.png", "model=other.onnx") == 1
    err = capsys.readouterr().err
    assert err.startswith(f"error: other.onnx: {said}, want float32 (1, 3, height, width), RGB in")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("shape", [[1, 3, "h", "w"], ["n", "c", "h", "w"], [1, 3, 64, 64], None])
def test_a_layout_that_fits_or_is_left_open(shape):
    assert OnnxStudent(network(shape), "open", 1).channels == 3


def test_the_layout_is_named_with_the_file():
    with pytest.raises(DistillError, match=r"^name: its input is float64"):
        OnnxStudent(network([1, 3, 8, 8], TensorProto.DOUBLE), "name", 1)
