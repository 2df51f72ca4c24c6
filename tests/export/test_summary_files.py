"""Students that another file tells of the whole picture: every form of ONNX, and code for apps."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from PIL import Image

from distill.api import load
from distill.export.format import Float32
from distill.export.fp16 import Float16
from distill.export.int8 import Int8
from distill.export.snippets import snippets_of
from distill.export.uint8 import Uint8
from support.export_photos import output_of
from support.export_trials import (
    NODE_MODULES,
    SIDES,
    astronaut,
    convert,
    difference,
    expected_bytes,
    in_form,
    run_cpp,
    run_snippet,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def separate(told):
    """The trained one with its summary in a file of its own, and what else is asked for."""

    def source(**asked):
        return replace(told, exporter=replace(told.exporter, **{"profile": "transposed"} | asked))

    return source


class Plain(Float32):
    """The float32 file as the other formats are written."""

    def convert(self, source, folder):
        self.write(source.exporter.export(source.folded), source, folder)


@pytest.mark.parametrize("format_", [Plain, Float16, Uint8])
@pytest.mark.parametrize(
    "asked", [{}, {"size": SIDES, "batch": 2, "input": "float255_nhwc"}, {"profile": "strict"}]
)
def test_each_format_has_both_files(format_, asked, separate, tmp_path):
    assert convert(format_(), separate(**asked), tmp_path) <= 3 / 255
    assert {path.name for path in tmp_path.iterdir()} == set(format_().files)


def test_int8_is_calibrated_with_the_summaries_of_its_photos(separate, tmp_path):
    assert difference(Int8(), separate(), tmp_path) <= 0.2
    assert {path.name for path in tmp_path.iterdir()} == set(Int8().files)


@pytest.mark.parametrize("format_", [Plain, Float16, Uint8])
def test_stylize_takes_the_file_beside(format_, separate, tmp_path):
    source = separate()
    format_().convert(source, tmp_path)
    made = load(tmp_path / format_().files[0])(_picture(astronaut().numpy()))
    expected = _picture(output_of(source.folded, astronaut()).numpy())
    assert np.abs(np.asarray(made, float) - np.asarray(expected)).max() <= 2


SOURCES = [
    ({"size": (512, 320), "batch": 2}, (512, 320)),
    ({"size": SIDES, "input": "uint8_nhwc"}, SIDES),
    ({"dynamic": True}, (90, 70)),
]


@pytest.mark.parametrize(("asked", "sides"), SOURCES)
def test_python_s_snippet(asked, sides, separate, tmp_path):
    source, made = separate(**asked), Plain()
    made.convert(source, tmp_path)
    texts = snippets_of(Float32(), source.exporter, 3, made.summary_in(tmp_path))
    (tmp_path / "code.py").write_text(texts["py"])
    photo = _picture(astronaut().numpy()).resize(sides[::-1])
    photo.save(tmp_path / "photo.png")
    run_snippet(tmp_path)
    got = np.asarray(Image.open(tmp_path / "out.png"), float)
    assert np.abs(got - np.asarray(load("hayao-small")(photo))).max() <= 1


@pytest.mark.skipif(not (NODE_MODULES / "onnxruntime-web").is_dir(), reason="no web/node_modules")
@pytest.mark.parametrize("sides", [SIDES, (512, 320)])
def test_javascript_s_snippet_by_onnxruntime_web(sides, separate, tmp_path):
    source, made = separate(size=sides, batch=2), Plain()
    made.convert(source, tmp_path)
    texts = snippets_of(Float32(), source.exporter, 3, made.summary_in(tmp_path))
    (tmp_path / "code.mjs").write_text(texts["mjs"])
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    photo = _picture(astronaut().numpy()).resize(sides[::-1])
    (tmp_path / "photo.raw").write_bytes(photo.convert("RGBA").tobytes())
    (tmp_path / "main.mjs").write_text(
        'import { readFileSync, writeFileSync } from "node:fs";\n'
        'import { open, stylize } from "./code.mjs";\n'
        'const files = ["student.onnx", "student_summary.onnx"].map((n) => readFileSync(n));\n'
        "const [session, summarizer] = await Promise.all(files.map(open));\n"
        'writeFileSync("out.raw", await stylize(session, readFileSync("photo.raw"), summarizer));\n'
    )
    node = shutil.which("node")
    assert node is not None
    subprocess.run([node, "main.mjs"], cwd=tmp_path, check=True, capture_output=True)
    got = np.fromfile(tmp_path / "out.raw", np.uint8).reshape(*sides, 4)[..., :3]
    assert np.abs(got - np.asarray(load("hayao-small")(photo), float)).max() <= 1


def test_cpp_s_snippet_by_onnx_runtime(separate, tmp_path):
    source, made = separate(size=SIDES, batch=2), Plain()
    made.convert(source, tmp_path)
    code = snippets_of(Float32(), source.exporter, 3, made.summary_in(tmp_path))["cpp"]
    (library,) = (Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*")
    (tmp_path / "libonnxruntime.so.1").symlink_to(library)
    link = ["libonnxruntime.so.1", "-Wl,-rpath,."]
    call = "stylize(session, summarizer, photo)"
    got = run_cpp(code, "onnxruntime_cxx_api.h", call, link, tmp_path)
    assert np.abs(got - expected_bytes(source)).max() <= 1


def _picture(photo: np.ndarray) -> Image.Image:
    return Image.fromarray(in_form(photo, "uint8_nhwc")[0])
