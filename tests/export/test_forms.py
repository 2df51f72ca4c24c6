"""What files take and give: every form, shape and format against the float network in PyTorch."""

import json
import shutil
import subprocess
import sys
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from PIL import Image

from distill.config.settings.commands import TakesOnnxFiles
from distill.core.errors import DistillError
from distill.core.onnx_files import ABOUT, noted
from distill.core.sessions import open_session, picture_call
from distill.export.format import ConversionSource, ConvertedFormat, Float32
from distill.export.forms import Form
from distill.export.fp16 import Float16
from distill.export.int8 import Int8
from distill.export.onnx import OnnxExporter
from distill.export.snippets import snippets_of
from distill.export.uint8 import Uint8
from distill.stylize.stylizing import open_student
from support.export_photos import output_of, photos
from support.export_trials import (
    ENDS,
    NODE_MODULES,
    SIDES,
    assert_no_gap,
    convert,
    expected_bytes,
    in_form,
    pictures,
    run_cpp,
    run_python,
)


@pytest.fixture(scope="module")
def graphs(source):
    """The graphs of one and of two pictures of 64×96, to which each form is given."""
    exporter = replace(source.exporter, size=SIDES)
    return {n: replace(exporter, batch=n).export(source.folded) for n in (1, 2)}


@pytest.mark.parametrize(("taken", "given"), ENDS)
def test_onnx_in_every_form(source, graphs, taken, given):
    exporter = replace(source.exporter, size=SIDES, batch=2, input=taken, output=given)
    made = Float32().in_forms(deepcopy(graphs[2]), exporter, 3)
    session, some = open_session(made, 1), pictures(2)
    got = picture_call(session)(in_form(some.numpy(), taken))
    expected = in_form(output_of(source.folded, some).numpy(), given)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    assert session.get_inputs()[0].shape == list(in_form(some.numpy(), taken).shape)
    # Rounding may go either way in the last bit; else they are float32's own errors.
    most = 1 if given.startswith("uint8") else 1e-4 * (255 if "255" in given else 1)
    assert np.abs(got.astype(float) - expected).max() <= most
    about = json.loads(noted(made, ABOUT) or "")
    assert about["input"]["shape"] == list(in_form(some.numpy(), taken).shape)
    assert about["output"]["range"] == [0, 1 if given.split("_")[0] == "float" else 255]
    assert about["input"]["layout"] == taken.split("_")[1].upper()


@pytest.mark.parametrize(("taken", "given"), ENDS)
def test_stylize_takes_every_form(source, graphs, taken, given, tmp_path):
    exporter = replace(source.exporter, size=SIDES, input=taken, output=given)
    onnx.save(Float32().in_forms(deepcopy(graphs[1]), exporter, 3), tmp_path / "s.onnx")
    student = open_student(tmp_path / "s.onnx", convention=TakesOnnxFiles())
    expected = output_of(source.folded, pictures(1))
    np.testing.assert_allclose(student(pictures(1).numpy()), expected, atol=0.51 / 255)


@pytest.mark.parametrize("asked", [{}, {"input": "uint8_nhwc", "batch": 2}])
def test_sides_that_32_does_not_divide(shipped, asked):
    """Filled up by the last row and column, and cut again, in the file."""
    exporter = replace(shipped.exporter, size=(72, 100), **asked)
    made = Float32().in_forms(exporter.export(shipped.folded), exporter, 3)
    some = torch.nn.functional.interpolate(pictures(2), (72, 100))
    run, form = picture_call(open_session(made, 1)), asked.get("input", "float_nchw")
    few = some[: asked.get("batch", 1)].mul(255).round().div(255)
    filled = torch.from_numpy(np.pad(few.numpy(), ((0, 0), (0, 0), (0, 24), (0, 28)), "edge"))
    expected = in_form(output_of(shipped.folded, filled)[:, :, :72, :100].numpy(), form)
    got = run(in_form(few.numpy(), form))
    assert got.shape == expected.shape
    assert np.abs(got.astype(float) - expected).max() <= (1 if "uint8" in form else 1e-4)


def test_any_size_and_any_number_in_bytes(source):
    exporter = replace(source.exporter, dynamic=True, input="uint8_nhwc", profile="any", opset=11)
    made = Float32().in_forms(exporter.export(source.folded), exporter, 3)
    run = picture_call(open_session(made, 1))
    for some in (photos(3), pictures(1)):
        got = run(in_form(some.numpy(), "uint8_nhwc"))
        seen = torch.from_numpy(in_form(some.numpy(), "uint8_nchw")).float() / 255
        expected = in_form(output_of(source.folded, seen).numpy(), "uint8_nhwc")
        assert np.abs(got.astype(int) - expected).max() <= 1


CASES = [
    (Float16, {"input": "uint8_nhwc"}),
    (Float16, {"batch": 2}),
    (Uint8, {}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("format_", "asked"), CASES)
def test_every_format_in_its_own_runtime(format_, asked, shipped, tmp_path):
    source = replace(shipped, exporter=replace(shipped.exporter, **asked))
    # 2 levels, and what the sharpness of a head makes of rounding to half precision.
    assert convert(format_(), source, tmp_path) <= 3 / 255


@pytest.mark.slow
def test_int8_of_several_pictures_in_bytes(source, tmp_path):
    exporter = replace(source.exporter, batch=2, input="uint8_nhwc", profile="any")
    assert convert(Int8(), replace(source, exporter=exporter), tmp_path) <= 0.2
    session = open_session(tmp_path / "student_int8.onnx", 1)
    assert session.get_inputs()[0].shape == [2, 64, 64, 3]


@pytest.mark.parametrize(
    ("exporter", "said"),
    [
        *(({"opset": opset}, f"exporter.opset={opset}: from 9 to 20") for opset in (0, 8, 21, -1)),
        *(({"size": side}, f"exporter.size={side}: at least 32 pixels") for side in (0, -32, 31)),
        ({"size": [96, 64, 3]}, r"want a side, or \[HEIGHT,WIDTH\]"),
        ({"size": [96, 100], "dynamic": True}, "at least 32 pixels; of a dynamic file a multiple"),
        ({"batch": 0}, "exporter.batch=0: at least 1"),
        ({"batch": 2, "dynamic": True}, "of a dynamic file any, leave it out"),
    ],
)
def test_what_no_file_can_be(exporter, said):
    with pytest.raises(DistillError, match=said):
        OnnxExporter(**exporter)


# What a snippet is made of says nothing of the network.
of_one_student = pytest.mark.parametrize("source", ["detail"], indirect=True)


@pytest.mark.slow
@of_one_student
@pytest.mark.parametrize(("taken", "given"), ENDS)
def test_python_s_snippet_of_every_form(source, graphs, taken, given, photo):
    exporter = replace(source.exporter, size=SIDES, batch=2, input=taken, output=given)
    source = replace(source, exporter=exporter)
    made = Float32().in_forms(deepcopy(graphs[2]), exporter, 3)
    onnx.save(made, photo.parent / "student.onnx")
    got = run_python(Float32(), source, photo.parent)
    assert np.abs(got - expected_bytes(source)).max() <= 1


@pytest.mark.slow
def test_python_s_snippet_turns_photos_and_refuses_more_than_8_bits(tmp_path: Path) -> None:
    exporter = OnnxExporter(18, profile="any", dynamic=True)
    onnx.save(exporter.export(torch.nn.Identity()), tmp_path / "student.onnx")
    (tmp_path / "code.py").write_text(snippets_of(Float32(), exporter, 3)["py"])
    upright = np.random.default_rng(0).integers(0, 256, (33, 70, 3), np.uint8)
    turned = Image.Exif()
    turned[274] = 6  # Orientation: to be turned to the right by 90 degrees
    Image.fromarray(np.rot90(upright).copy()).save(tmp_path / "turned.png", exif=turned)
    grey = np.full((64, 64), 2**15, np.uint16)
    Image.fromarray(grey).save(tmp_path / "grey.tif")

    def call(name: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "code.py", name, "out.png"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert call("turned.png").returncode == 0
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "out.png")), upright)
    refused = call("grey.tif")
    assert (refused.returncode, refused.stderr[:23]) == (1, "more than 8 bits a chan")


@pytest.mark.slow
@pytest.mark.skipif(not (NODE_MODULES / "onnxruntime-web").is_dir(), reason="no web/node_modules")
@of_one_student
def test_javascript_s_snippet_of_every_form_by_onnxruntime_web(source, tmp_path):
    plain = replace(source.exporter, size=SIDES, opset=11)
    graph = plain.export(source.folded)
    names = [str(number) for number in range(len(ENDS))]
    for name, (taken, given) in zip(names, ENDS, strict=True):
        exporter = replace(plain, input=taken, output=given)
        made = Float32().in_forms(deepcopy(graph), exporter, 3)
        onnx.save(made, tmp_path / f"{name}.onnx")
        (tmp_path / f"{name}.mjs").write_text(snippets_of(Float32(), exporter, 3)["mjs"])
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    pixels = np.full((*SIDES, 4), 255, np.uint8)
    pixels[..., :3] = in_form(pictures(1).numpy(), "uint8_nhwc")[0]
    (tmp_path / "photo.raw").write_bytes(pixels.tobytes())
    (tmp_path / "main.mjs").write_text(
        'import { readFileSync, writeFileSync } from "node:fs";\n'
        "for (const name of process.argv.slice(2)) {\n"
        "  const { open, stylize } = await import(`./${name}.mjs`);\n"
        "  const session = await open(readFileSync(`${name}.onnx`));\n"
        '  writeFileSync(`${name}.raw`, await stylize(session, readFileSync("photo.raw")));\n'
        "}\n"
    )
    node = shutil.which("node")
    assert node is not None
    subprocess.run([node, "main.mjs", *names], cwd=tmp_path, check=True, capture_output=True)
    for name, ends in zip(names, ENDS, strict=True):
        got = np.frombuffer((tmp_path / f"{name}.raw").read_bytes(), np.uint8)
        got = got.reshape(*SIDES, 4)
        assert np.abs(got[..., :3] - expected_bytes(source)).max() <= 1, ends
        assert (got[..., 3] == 255).all()


@pytest.mark.slow
@of_one_student
@pytest.mark.parametrize(("taken", "given"), ENDS)
def test_cpp_s_snippet_by_onnx_runtime(source, graphs, taken, given, tmp_path):
    """By the library of Python's wheel; newer ones run what older headers compile."""
    exporter = replace(source.exporter, size=SIDES, batch=2, input=taken, output=given)
    made = Float32().in_forms(deepcopy(graphs[2]), exporter, 3)
    onnx.save(made, tmp_path / "student.onnx")
    code = snippets_of(Float32(), exporter, 3)["cpp"]
    (library,) = (Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*")
    (tmp_path / "libonnxruntime.so.1").symlink_to(library)
    link = ["libonnxruntime.so.1", "-Wl,-rpath,."]
    got = run_cpp(code, "onnxruntime_cxx_api.h", "stylize(session, photo)", link, tmp_path)
    assert np.abs(got - expected_bytes(source)).max() <= 1


GIVEN: list[dict] = [{}, {"dynamic": True}, {"input": "float255_nchw"}]
KINDS = [(kind, given) for kind in (Float32, Float16) for given in GIVEN]


@pytest.mark.parametrize(("format_", "asked"), KINDS)
def test_no_snippet_has_a_gap(format_, asked):
    assert_no_gap(format_(), asked)


def test_a_format_of_another_package_may_have_the_names_of_earlier_versions():
    class Earlier(ConvertedFormat):
        name, endings, own = "earlier", (".bin",), "uint8_nhwc"

        def convert(self, source: ConversionSource, folder: Path) -> None: ...

    assert Earlier().forms(OnnxExporter()) == (Form("uint8", "nhwc"), Form("uint8", "nhwc"))
