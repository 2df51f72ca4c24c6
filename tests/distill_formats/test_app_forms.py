"""What files for apps take and give: every form and format against the float network in PyTorch."""

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from torch import nn

from distill.check.check_report import check
from distill.check.snapml_profile import PROFILE as SNAPML
from distill.core.errors import DistillError
from distill.core.onnx_files import ABOUT
from distill.export.format import ConversionSource
from distill.export.onnx import OnnxExporter
from distill.export.snippets import snippets_of
from distill.models.students.student import Student
from distill.runs.published_student import PublishedStudent
from distill_formats.coreml import CoreML
from distill_formats.executorch import ExecuTorch
from distill_formats.lens_studio import LensStudio
from distill_formats.ncnn import Ncnn
from distill_formats.tflite import TfLite
from support.export_photos import output_of
from support.export_trials import (
    ENDS,
    NODE_MODULES,
    SIDES,
    assert_no_gap,
    astronaut,
    convert,
    difference,
    expected_bytes,
    in_form,
    pictures,
    run_cpp,
    run_python,
)

TFLITE_ENDS = [  # a conversion takes half a minute
    ("float_nhwc", "float_nhwc"),
    ("uint8_nhwc", "float_nchw"),
    ("float255_nchw", "uint8_nhwc"),
]
CONVERTER = os.environ.get("DISTILL_LITERT_PYTHON")
STAND_INS = Path(__file__).with_name("stand_ins")  # for Apple's, Android's and Snap's classes
CASES = [
    (ExecuTorch, {}),
    (ExecuTorch, {"size": (72, 100), "input": "uint8_nhwc", "batch": 2}),
    (Ncnn, {"size": (72, 100)}),
    (TfLite, {"size": (72, 100), "input": "uint8_nhwc"}),
    (Ncnn, {"input": "uint8_nhwc"}),
    (TfLite, {}),
    (TfLite, {"input": "uint8_nhwc", "batch": 2}),
    (TfLite, {"input": "float255_nchw", "output": "uint8_nhwc"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("format_", "asked"), CASES)
def test_every_format_in_its_own_runtime(format_, asked, shipped, tmp_path):
    made = format_()
    if format_ is Ncnn:
        for package in ("pnnx", "ncnn"):
            pytest.importorskip(package, reason="the extra distill[ncnn] is not installed")
    if format_ is ExecuTorch:
        pytest.importorskip("executorch", reason="the extra distill[executorch] is not installed")
    if format_ is TfLite:
        if not CONVERTER:
            pytest.skip("no DISTILL_LITERT_PYTHON, an interpreter with litert-torch")
        made = TfLite(python=CONVERTER)
    source = replace(shipped, exporter=replace(shipped.exporter, **asked))
    # 2 levels, and what the sharpness of a head makes of rounding to half precision.
    assert convert(made, source, tmp_path) <= 3 / 255


@pytest.mark.slow
@pytest.mark.parametrize("source", ["detail"], indirect=True)
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


@pytest.mark.slow
@pytest.mark.skipif(not CONVERTER, reason="no DISTILL_LITERT_PYTHON, an interpreter with it")
@pytest.mark.parametrize("source", ["detail"], indirect=True)
@pytest.mark.parametrize(("taken", "given"), TFLITE_ENDS)
def test_python_s_snippet_of_tflite(source, taken, given, photo):
    exporter = replace(source.exporter, size=SIDES, batch=2, input=taken, output=given)
    source = replace(source, exporter=exporter)
    TfLite(python=CONVERTER).convert(source, photo.parent)
    got = run_python(TfLite(), source, photo.parent)
    assert np.abs(got - expected_bytes(source)).max() <= 1


@pytest.mark.slow
@pytest.mark.parametrize("language", ["python", "cpp"])
@pytest.mark.parametrize("source", ["detail"], indirect=True)
@pytest.mark.parametrize(("taken", "given"), [ENDS[0], ENDS[2], ("float255_nchw", "float_nchw")])
def test_snippets_by_ncnn(source, taken, given, language, photo):
    pytest.importorskip("pnnx", reason="the extra distill[ncnn] is not installed")
    exporter = replace(source.exporter, size=SIDES, input=taken, output=given)
    source = replace(source, exporter=exporter)
    Ncnn().convert(source, photo.parent)
    if language == "python":
        got = run_python(Ncnn(), source, photo.parent)
    else:
        code = snippets_of(Ncnn(), exporter, 3)["cpp"]
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
        code = snippets_of(TfLite(), exporter, channels)["kt"]
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
    code = snippets_of(CoreML(), OnnxExporter(size=SIDES, **asked), 3)["swift"]
    call = code.splitlines()[-1].removeprefix("// ")
    kind = "MLMultiArray" if asked else "CVPixelBuffer"
    used = f"func use(_ model: MLModel, _ photo: {kind}) throws -> {kind}? {{\n  {call}\n}}\n"
    (tmp_path / "code.swift").write_text(f"{code}\n{used}")
    shutil.copy(STAND_INS / "CoreML.swift", tmp_path)
    module = ["-emit-module", "-module-name", "CoreML", "-parse-as-library", "CoreML.swift"]
    for command in (module, ["-typecheck", "-warnings-as-errors", "-I", ".", "code.swift"]):
        subprocess.run(["swiftc", *command], cwd=tmp_path, check=True)


@pytest.mark.parametrize(
    ("format_", "asked", "said"),
    [
        (Ncnn, {"batch": 2}, "ncnn: takes one picture"),
        (Ncnn, {"input": "float_nhwc"}, "ncnn: its Mat has channels first"),
        (CoreML, {"batch": 2}, "coreml: a picture is one; exporter.input=float_nchw"),
        (ExecuTorch, {"dynamic": True}, "executorch: holds one size"),
        (TfLite, {"dynamic": True}, "tflite: holds one size"),
        (LensStudio, {"batch": 2}, "lens_studio: a camera gives one picture"),
    ],
)
def test_what_a_format_cannot_is_one_line(format_, asked, said):
    with pytest.raises(DistillError, match=said):
        format_().about(OnnxExporter(**asked), 3)


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
    script = Path(__file__).parents[2] / "src/distill_formats/snippets/lens_studio.ts.txt"
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


GIVEN: list[dict] = [{}, {"dynamic": True}, {"input": "float255_nchw"}]
KINDS = [(kind, given) for kind in (Ncnn, CoreML) for given in GIVEN]


@pytest.mark.parametrize(
    ("format_", "asked"), [*KINDS, (ExecuTorch, {}), (TfLite, {}), (TfLite, GIVEN[2])]
)
def test_no_snippet_has_a_gap(format_, asked):
    assert_no_gap(format_(), asked)


@pytest.mark.slow
def test_ncnn(told, tmp_path):
    for package in ("pnnx", "ncnn"):
        pytest.importorskip(package, reason="the extra distill[ncnn] is not installed")
    assert difference(Ncnn(), told, tmp_path) <= 2 / 255


@pytest.mark.slow
@pytest.mark.skipif(not CONVERTER, reason="no DISTILL_LITERT_PYTHON, an interpreter with it")
def test_tflite(told, tmp_path):
    pytest.importorskip("ai_edge_litert", reason="the extra distill[tflite] is not installed")
    assert difference(TfLite(python=CONVERTER), told, tmp_path) <= 2 / 255


@pytest.mark.slow
def test_core_ml_pools_for_its_statistics(told, tmp_path):
    ct = pytest.importorskip("coremltools", reason="the extra distill[coreml] is not installed")
    CoreML().convert(told, tmp_path)
    package = str(tmp_path / "student.mlpackage")
    spec = ct.models.MLModel(package, skip_model_load=True).get_spec()
    (block,) = spec.mlProgram.functions["main"].block_specializations.values()
    done = Counter(operation.type for operation in block.operations)
    assert done["reduce_mean"] + done["avg_pool"] == 4
    assert done["conv"] == sum(map(_convolves, told.folded.modules())) + 1  # the 4×4 averages


def test_the_graph_that_goes_to_another_interpreter(told):
    """It is traced without values: which way a photo goes must not hang on its size."""
    graph = torch.fx.symbolic_trace(TfLite().traceable(told))
    made = graph(astronaut().permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
    torch.testing.assert_close(made, output_of(told.folded, astronaut()))


@pytest.mark.parametrize("converted", [CoreML, ExecuTorch, Ncnn, TfLite])
def test_a_thumbnail_of_any_size_is_refused(converted, told):
    other = replace(told, exporter=replace(told.exporter, dynamic=True, opset=18))
    expected = rf"^{converted.name}: has no resize of any size .* take exporter.size="
    with pytest.raises(DistillError, match=expected):
        converted().traceable(other)


def _convolves(module: nn.Module) -> bool:
    return isinstance(module, nn.Conv2d)
