"""What files take and give: every form, shape and format against the float network in PyTorch."""

import json
import os
import re
import shutil
import subprocess
import sys
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from PIL import Image

from distill.check.check_report import check
from distill.check.snapml_profile import PROFILE as SNAPML
from distill.config.settings.commands import TakesOnnxFiles
from distill.core.errors import DistillError
from distill.core.onnx_files import ABOUT, noted
from distill.core.sessions import open_session, picture_call
from distill.export.coreml import CoreML
from distill.export.format import ConversionSource, ConvertedFormat, Float32, Format
from distill.export.forms import Form, FormName
from distill.export.fp16 import Float16
from distill.export.int8 import Int8
from distill.export.lens_studio import LensStudio
from distill.export.ncnn import Ncnn
from distill.export.onnx import OnnxExporter, batches
from distill.export.snippets import snippets_of
from distill.export.tflite import TfLite
from distill.export.uint8 import Uint8
from distill.hub.published_student import PublishedStudent
from distill.models.students.student import Student
from distill.stylize.stylizing import open_student
from support.export_photos import output_of, photos

FORMS = get_args(FormName)
ENDS = [
    *((form, form) for form in FORMS),
    ("uint8_nhwc", "float_nchw"),
    ("float_nhwc", "uint8_nchw"),
]
TFLITE_ENDS = [  # a conversion takes half a minute
    ("float_nhwc", "float_nhwc"),
    ("uint8_nhwc", "float_nchw"),
    ("float255_nchw", "uint8_nhwc"),
]
SIDES = (64, 96)
NODE_MODULES = Path(__file__).parents[2] / "web/node_modules"
CONVERTER = os.environ.get("DISTILL_LITERT_PYTHON")
STAND_INS = Path(__file__).with_name("stand_ins")  # for Apple's, Android's and Snap's classes


def in_form(pictures: np.ndarray, name: str) -> np.ndarray:
    """(N, C, H, W) in [0, 1] by the words of the form's name."""
    kind, layout = name.split("_")
    values = {
        "float": pictures,
        "float255": pictures * 255,
        "uint8": np.floor(pictures * 255 + 0.5),
    }
    made = values[kind].astype(np.uint8 if kind == "uint8" else np.float32)
    return np.moveaxis(made, 1, 3) if layout == "nhwc" else made


def pictures(count: int) -> torch.Tensor:
    """Bitmaps of 64×96."""
    square = photos(count)
    return torch.cat([square, square.flip(3)[..., :32]], 3).mul(255).round().div(255)


@pytest.fixture(scope="module", params=["toon", "hayao-small"])
def shipped(request):
    """One without and one with statistics of the whole picture, at 64×96."""
    student = PublishedStudent.shipped(request.param)
    told = student.student.statistics is not None
    about = json.dumps({"style": request.param, "version": "1", "weights": "0"})
    exporter = OnnxExporter(18 if told else 11, SIDES, profile="any", about=about)
    return ConversionSource(
        student.student, exporter, 3, lambda: pictures(48), student.student, student.description,
        CONVERTER,
    )  # fmt: skip


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


def convert(made: Format, source: ConversionSource, folder: Path) -> float:
    """Largest difference to PyTorch in its own runtime, of what both see, in [0, 1]."""
    made.convert(source, folder)  # type: ignore[attr-defined]
    run = made.open(folder)
    assert run is not None
    taken, given = (f"{each.kind}_{each.layout}" for each in made.forms(source.exporter))
    some = torch.nn.functional.interpolate(pictures(3), source.exporter.sides).numpy()
    rows = batches(3, source.exporter.batch)
    got = np.concatenate([run(np.ascontiguousarray(in_form(some[n], taken))) for n in rows])[:3]
    scaled = got.astype(np.float32) / (1 if given.startswith("float_") else 255)
    scaled = np.moveaxis(scaled, 3, 1) if given.endswith("nhwc") else scaled
    height, width = source.exporter.sides
    edges = ((0, 0), (0, 0), (0, -height % 32), (0, -width % 32))
    filled = torch.from_numpy(np.pad(some, edges, "edge"))
    expected = output_of(source.folded, filled)[:, :, :height, :width].numpy()
    return float(np.abs(scaled - expected).max())


CASES = [
    (Ncnn, {"size": (72, 100)}),
    (TfLite, {"size": (72, 100), "input": "uint8_nhwc"}),
    (Float16, {"input": "uint8_nhwc"}),
    (Float16, {"batch": 2}),
    (Uint8, {}),
    (Ncnn, {}),
    (Ncnn, {"input": "uint8_nhwc"}),
    (TfLite, {}),
    (TfLite, {"input": "uint8_nhwc", "batch": 2}),
    (TfLite, {"input": "float255_nchw", "output": "uint8_nhwc"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("format_", "asked"), CASES)
def test_every_format_in_its_own_runtime(format_, asked, shipped, tmp_path):
    if format_ is Ncnn:
        for package in ("pnnx", "ncnn"):
            pytest.importorskip(package, reason="the extra distill[ncnn] is not installed")
    if format_ is TfLite and not CONVERTER:
        pytest.skip("no DISTILL_LITERT_PYTHON, an interpreter with litert-torch")
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
        ({"size": [96, 64, 3]}, r"want a side, or \[HEIGHT,WIDTH\]"),
        ({"size": [96, 100], "dynamic": True}, "at least 32 pixels; of a dynamic file a multiple"),
        ({"batch": 0}, "exporter.batch=0: at least 1"),
        ({"batch": 2, "dynamic": True}, "of a dynamic file any, leave it out"),
    ],
)
def test_what_no_file_can_be(exporter, said):
    with pytest.raises(DistillError, match=said):
        OnnxExporter(**exporter)


@pytest.mark.parametrize(
    ("format_", "asked", "said"),
    [
        (Ncnn, {"batch": 2}, "ncnn: takes one picture"),
        (Ncnn, {"input": "float_nhwc"}, "ncnn: its Mat has channels first"),
        (CoreML, {"batch": 2}, "coreml: a picture is one; exporter.input=float_nchw"),
        (TfLite, {"dynamic": True}, "tflite: holds one size"),
        (LensStudio, {"batch": 2}, "lens_studio: a camera gives one picture"),
    ],
)
def test_what_a_format_cannot_is_one_line(format_, asked, said):
    with pytest.raises(DistillError, match=said):
        format_().about(OnnxExporter(**asked), 3)


@pytest.mark.slow
def test_core_ml_of_any_size_and_of_arrays(source, tmp_path):
    ct = pytest.importorskip("coremltools", reason="the extra distill[coreml] is not installed")
    exporter = replace(source.exporter, dynamic=True, size=SIDES, profile="any")
    CoreML().convert(replace(source, exporter=exporter), tmp_path)
    load = {"skip_model_load": True}
    spec = ct.models.MLModel(str(tmp_path / "student.mlpackage"), **load).get_spec()
    sizes = spec.description.input[0].type.imageType.imageSizeRange
    assert (sizes.heightRange.lowerBound, sizes.widthRange.upperBound) == (64, 4096)
    metadata = spec.description.metadata
    assert (metadata.author, metadata.license[:10]) == ("distill", "commercial")
    assert json.loads(metadata.userDefined[ABOUT])["input"]["type"] == "picture"
    assert "values 0 to 255" in spec.description.output[0].shortDescription
    arrays = replace(exporter, dynamic=False, input="float_nhwc", batch=2)
    CoreML("arrays").convert(replace(source, exporter=arrays), tmp_path)
    spec = ct.models.MLModel(str(tmp_path / "arrays.mlpackage"), **load).get_spec()
    assert list(spec.description.input[0].type.multiArrayType.shape) == [2, *SIDES, 3]


@pytest.fixture
def photo(tmp_path):
    pixels = (pictures(1)[0].permute(1, 2, 0).numpy() * 255).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def expected_bytes(source: ConversionSource) -> np.ndarray:
    output = output_of(source.folded, pictures(1)).numpy()
    return np.floor(in_form(output, "float255_nhwc")[0] + 0.5)


def run_python(format_: Format, source: ConversionSource, folder: Path) -> np.ndarray:
    texts = snippets_of(format_.about(source.exporter, 3), format_.files[0], SIDES)
    (folder / "code.py").write_text(texts["py"])
    command = [sys.executable, "code.py", "photo.png", "out.png"]
    subprocess.run(command, cwd=folder, check=True)
    return np.asarray(Image.open(folder / "out.png"), float)


@pytest.mark.slow
@pytest.mark.parametrize(("taken", "given"), ENDS)
def test_python_s_snippet_of_every_form(source, taken, given, photo):
    exporter = replace(source.exporter, size=SIDES, batch=2, input=taken, output=given)
    source = replace(source, exporter=exporter)
    made = Float32().in_forms(exporter.export(source.folded), exporter, 3)
    onnx.save(made, photo.parent / "student.onnx")
    got = run_python(Float32(), source, photo.parent)
    assert np.abs(got - expected_bytes(source)).max() <= 1


@pytest.mark.slow
def test_python_s_snippet_turns_photos_and_refuses_more_than_8_bits(tmp_path: Path) -> None:
    exporter = OnnxExporter(18, profile="any", dynamic=True)
    onnx.save(exporter.export(torch.nn.Identity()), tmp_path / "student.onnx")
    about = Float32().about(exporter, 3)
    (tmp_path / "code.py").write_text(snippets_of(about, "student.onnx", SIDES)["py"])
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
@pytest.mark.parametrize(("taken", "given"), ENDS)
def test_javascript_s_snippet_by_onnxruntime_web(source, taken, given, tmp_path):
    exporter = replace(source.exporter, size=SIDES, input=taken, output=given, opset=11)
    made = Float32().in_forms(exporter.export(source.folded), exporter, 3)
    onnx.save(made, tmp_path / "student.onnx")
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    texts = snippets_of(Float32().about(exporter, 3), "student.onnx", SIDES)
    (tmp_path / "code.mjs").write_text(texts["mjs"])
    pixels = np.full((*SIDES, 4), 255, np.uint8)
    pixels[..., :3] = in_form(pictures(1).numpy(), "uint8_nhwc")[0]
    (tmp_path / "photo.raw").write_bytes(pixels.tobytes())
    (tmp_path / "main.mjs").write_text(
        'import { open, stylize } from "./code.mjs";\n'
        'import { readFileSync, writeFileSync } from "node:fs";\n'
        'const session = await open(readFileSync("student.onnx"));\n'
        'writeFileSync("out.raw", await stylize(session, readFileSync("photo.raw")));\n'
    )
    node = shutil.which("node")
    assert node is not None
    subprocess.run([node, "main.mjs"], cwd=tmp_path, check=True, capture_output=True)
    got = np.frombuffer((tmp_path / "out.raw").read_bytes(), np.uint8).reshape(*SIDES, 4)
    assert np.abs(got[..., :3] - expected_bytes(source)).max() <= 1
    assert (got[..., 3] == 255).all()


@pytest.mark.slow
@pytest.mark.skipif(not CONVERTER, reason="no DISTILL_LITERT_PYTHON, an interpreter with it")
@pytest.mark.parametrize(("taken", "given"), TFLITE_ENDS)
def test_python_s_snippet_of_tflite(source, taken, given, photo):
    exporter = replace(source.exporter, size=SIDES, batch=2, input=taken, output=given)
    source = replace(source, exporter=exporter, python=CONVERTER)
    TfLite().convert(source, photo.parent)
    got = run_python(TfLite(), source, photo.parent)
    assert np.abs(got - expected_bytes(source)).max() <= 1


def run_cpp(code: str, header: str, call: str, link: list[str], folder: Path) -> np.ndarray:
    """The output of a C++ snippet, whose last line, a comment, opens the file."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    command = [compiler, "-std=c++17", "-Wall", "-Werror", "-O1", "-I/usr/include/onnxruntime"]
    with_header = {"input": f"#include <{header}>", "text": True, "capture_output": True}
    if subprocess.run([*command, "-E", "-xc++", "-"], **with_header, check=False).returncode:
        pytest.skip(f"no {header}, see CPATH of C++ compilers")
    (folder / "code.cpp").write_text(code)
    opened = code.splitlines()[-1].removeprefix("// ")
    (folder / "main.cpp").write_text(
        f"""#include "code.cpp"
        #include <fstream>
        #include <iterator>
        int main() {{
          std::ifstream in("photo.raw", std::ios::binary);
          const std::vector<uint8_t> photo((std::istreambuf_iterator<char>(in)), {{}});
          {opened}
          const auto made = {call};
          std::ofstream("out.raw", std::ios::binary)
            .write(reinterpret_cast<const char*>(made.data()), made.size());
        }}"""
    )
    subprocess.run([*command, "main.cpp", *link, "-o", "main"], cwd=folder, check=True)
    pixels = in_form(pictures(1).numpy(), "uint8_nhwc")
    (folder / "photo.raw").write_bytes(pixels.tobytes())
    subprocess.run(["./main"], cwd=folder, check=True)
    return np.frombuffer((folder / "out.raw").read_bytes(), np.uint8).reshape(*SIDES, 3) * 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("taken", "given"), ENDS)
def test_cpp_s_snippet_by_onnx_runtime(source, taken, given, tmp_path):
    """By the library of Python's wheel; newer ones run what older headers compile."""
    exporter = replace(source.exporter, size=SIDES, batch=2, input=taken, output=given)
    made = Float32().in_forms(exporter.export(source.folded), exporter, 3)
    onnx.save(made, tmp_path / "student.onnx")
    code = snippets_of(Float32().about(exporter, 3), "student.onnx", SIDES)["cpp"]
    (library,) = (Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*")
    (tmp_path / "libonnxruntime.so.1").symlink_to(library)
    link = ["libonnxruntime.so.1", "-Wl,-rpath,."]
    got = run_cpp(code, "onnxruntime_cxx_api.h", "stylize(session, photo)", link, tmp_path)
    assert np.abs(got - expected_bytes(source)).max() <= 1


@pytest.mark.slow
@pytest.mark.parametrize("language", ["python", "cpp"])
@pytest.mark.parametrize(("taken", "given"), [ENDS[0], ENDS[2], ("float255_nchw", "float_nchw")])
def test_snippets_by_ncnn(source, taken, given, language, photo):
    pytest.importorskip("pnnx", reason="the extra distill[ncnn] is not installed")
    exporter = replace(source.exporter, size=SIDES, input=taken, output=given)
    source = replace(source, exporter=exporter)
    Ncnn().convert(source, photo.parent)
    if language == "python":
        got = run_python(Ncnn(), source, photo.parent)
    else:
        code = snippets_of(Ncnn().about(exporter, 3), Ncnn().files[0], SIDES)["cpp"]
        call = "stylize(net, photo.data(), WIDTH, HEIGHT)"
        got = run_cpp(code, "ncnn/net.h", call, ["-lncnn", "-pthread"], photo.parent)
    assert np.abs(got - expected_bytes(source)).max() <= 2


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("kotlinc"), reason="no kotlinc")
def test_kotlin_s_snippet_of_every_form(tmp_path):
    """Compiled and run with stand-ins for Android's classes; the interpreter's input is exact."""
    numbers = np.random.default_rng(0)
    shutil.copytree(STAND_INS, tmp_path / "code")
    photo = numbers.integers(0, 256, (*SIDES, 4), np.uint8)  # alpha, red, green, blue
    photo[..., 0] = 255
    photo.tofile(tmp_path / "photo")
    calls, expected = "", {}
    for number, (taken, given) in enumerate([*ENDS, *ENDS]):
        name, channels = f"case{number}", 3 + (number >= len(ENDS))
        exporter = OnnxExporter(size=SIDES, batch=2, input=taken, output=given)
        code = snippets_of(TfLite().about(exporter, channels), "student.tflite", SIDES)["kt"]
        (tmp_path / "code" / f"{name}.kt").write_text(f"package {name}\n{code}")
        calls += f'"{name}" to {{ i, b -> {name}.stylize(i, b) }}, '
        made = numbers.integers(0, 256, (*SIDES, channels), np.uint8)
        for side, pixels, form in (("in", photo[..., 1:], taken), ("out", made, given)):
            values = np.moveaxis(pixels, 2, 0)[None].repeat(2, 0).astype(np.float32) / 255
            in_form(values, form).tofile(tmp_path / f"{name}.{side}")
        alpha = made[..., 3:] if channels == 4 else np.full((*SIDES, 1), 255)
        expected[name] = np.concatenate([alpha, made[..., :3]], 2)
    (tmp_path / "code" / "main.kt").write_text(
        f"""import android.graphics.Bitmap
        import java.io.File
        import java.nio.ByteBuffer
        import org.tensorflow.lite.Interpreter

        val cases = listOf<Pair<String, (Interpreter, Bitmap) -> Bitmap>>({calls})

        fun main() {{
            val (height, width) = listOf({SIDES[0]}, {SIDES[1]})
            val pixels = IntArray(width * height)
            ByteBuffer.wrap(File("photo").readBytes()).asIntBuffer().get(pixels)
            val photo = Bitmap.createBitmap(pixels, width, height, Bitmap.Config.ARGB_8888)
            for ((name, stylize) in cases) {{
                val (input, output) = listOf("in", "out").map {{ File("$name.$it").readBytes() }}
                val made = stylize(Interpreter(input, output), photo)
                made.getPixels(pixels, 0, width, 0, 0, width, height)
                val bytes = ByteBuffer.allocate(4 * pixels.size)
                bytes.asIntBuffer().put(pixels)
                File("$name.got").writeBytes(bytes.array())
            }}
        }}"""
    )
    build = ["kotlinc", "code", "-Werror", "-include-runtime", "-d", "main.jar"]
    subprocess.run(build, cwd=tmp_path, check=True)
    subprocess.run(["java", "-jar", "main.jar"], cwd=tmp_path, check=True)
    for name, pixels in expected.items():
        got = np.fromfile(tmp_path / f"{name}.got", np.uint8).reshape(*SIDES, 4)
        np.testing.assert_array_equal(got, pixels, name)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("swiftc"), reason="no swiftc")
@pytest.mark.parametrize("asked", [{}, {"input": "float_nhwc", "batch": 2}])
def test_swift_s_snippet_fits_the_types(asked, tmp_path):
    """Against what it uses of Core ML, which is on Apple's systems only."""
    about = CoreML().about(OnnxExporter(size=SIDES, **asked), 3)
    code = snippets_of(about, "student.mlpackage", SIDES)["swift"]
    call = code.splitlines()[-1].removeprefix("// ")
    kind = "MLMultiArray" if asked else "CVPixelBuffer"
    used = f"func use(_ model: MLModel, _ photo: {kind}) throws -> {kind}? {{\n  {call}\n}}\n"
    (tmp_path / "code.swift").write_text(f"{code}\n{used}")
    shutil.copy(STAND_INS / "CoreML.swift", tmp_path)
    module = ["-emit-module", "-module-name", "CoreML", "-parse-as-library", "CoreML.swift"]
    for command in (module, ["-typecheck", "-warnings-as-errors", "-I", ".", "code.swift"]):
        subprocess.run(["swiftc", *command], cwd=tmp_path, check=True)


GIVEN: list[dict] = [{}, {"dynamic": True}, {"input": "float255_nchw"}]
KINDS = [(kind, given) for kind in (Float32, Float16, Ncnn, CoreML) for given in GIVEN]


@pytest.mark.parametrize(("format_", "asked"), [*KINDS, (TfLite, {}), (TfLite, GIVEN[2])])
def test_no_snippet_has_a_gap(format_, asked):
    about = format_().about(OnnxExporter(size=SIDES, **asked), 4)
    texts = snippets_of(about | {"style": "s", "version": "1"}, format_().files[0], SIDES)
    assert texts
    assert not [text for text in texts.values() if "@" in text]
    assert all(str(side) in text for side in SIDES for text in texts.values())


@pytest.mark.slow
def test_lens_studio_s_folder(tmp_path):
    """Of a student with statistics too: means are convolutions, which Snap's table has."""
    for name in ("toon", "hayao-small"):
        student = PublishedStudent.shipped(name)
        told = student.student.statistics is not None
        about = json.dumps({"style": name, "version": "1", "weights": "0"})
        exporter = OnnxExporter(11, profile="global" if told else "transposed", about=about)
        source = ConversionSource(
            student.student, exporter, 3, lambda: pictures(1), student.student, student.description
        )
        folder = tmp_path / name
        folder.mkdir()
        LensStudio().convert(source, folder)
        lens = folder / "lens_studio"
        steps = sorted(p.name for p in lens.glob("*.svg"))
        assert steps == [f"step-{i}.svg" for i in range(1, 6)]
        assert check(lens / "student.onnx", SNAPML).ok
        photo = torch.rand(1, 3, 256, 256, generator=torch.Generator().manual_seed(0))
        run = LensStudio().open(folder)
        np.testing.assert_allclose(
            run(photo.numpy()), output_of(student.student, photo).numpy(), atol=1e-4
        )
        readme, script = ((lens / each).read_text() for each in ("README.md", "Stylize.ts"))
        assert f"{(lens / 'student.onnx').stat().st_size:,} bytes" in readme
        assert "scale 0.00392157, bias 0" in readme
        assert "not for" in readme or "commercial use" in readme
        assert "WIDTH = 256, HEIGHT = 256, CHANNELS = 3" in script
        assert re.findall(r"\((step-.*?)\)", readme) == steps
        drawn = ["".join(ElementTree.parse(lens / step).getroot().itertext()) for step in steps]
        assert "3 × 256 × 256" in drawn[0]
        assert "student.onnx" in drawn[3]
        assert not re.search("@[A-Z]", readme + script.replace("@component", "") + str(drawn))


def test_a_thumbnail_is_none_of_snap_s_layers():
    student = PublishedStudent.shipped("hayao-small")
    exporter = OnnxExporter(size=SIDES, profile="global")
    source = ConversionSource(
        student.student, exporter, 3, lambda: pictures(1), student.student, student.description
    )
    assert isinstance(source.folded, Student)
    with pytest.raises(DistillError, match="lens_studio: Snap's table has no antialiased resize"):
        LensStudio().convert(source, Path("none"))


@pytest.mark.slow
@pytest.mark.skipif(not (NODE_MODULES / "typescript").is_dir(), reason="no web/node_modules")
def test_lens_studio_s_script_fits_the_types(tmp_path):
    """Against what it uses of Snap's public API, whose own declarations are on no registry."""
    script = Path(__file__).parents[2] / "src/distill/export/snippets/lens_studio.ts.txt"
    text = script.read_text()
    for name, value in (("STYLE", "x"), ("STEM", "student"), ("WIDTH", "256"), ("HEIGHT", "256")):
        text = text.replace(f"@{name}@", value)
    (tmp_path / "Stylize.ts").write_text(text.replace("@CHANNELS@", "3"))
    shutil.copy(STAND_INS / "lens_studio.d.ts", tmp_path)
    command = [
        "node", str(NODE_MODULES / "typescript/bin/tsc"), "--noEmit", "--strict",
        "--strictPropertyInitialization", "false", "--experimentalDecorators", "--target", "es2021",
        "--lib", "es2021", "Stylize.ts", "lens_studio.d.ts",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_format_of_another_package_may_have_the_names_of_earlier_versions():
    class Earlier(ConvertedFormat):
        name, endings, own = "earlier", (".bin",), "uint8_nhwc"

        def convert(self, source: ConversionSource, folder: Path) -> None: ...

    assert Earlier().forms(OnnxExporter()) == (Form("uint8", "nhwc"), Form("uint8", "nhwc"))
