"""What exported files take and give, tried against the float network in PyTorch."""

import runpy
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from distill.core.images import to_tensor
from distill.data.photos import centre_square, demo_photos, read_photo
from distill.export.format import ConversionSource, ConvertedFormat, Format
from distill.export.forms import FormName
from distill.export.onnx import OnnxExporter, batches
from distill.export.snippets import snippets_of
from support.export_photos import output_of, photos

FORMS = get_args(FormName)
ENDS = [
    *((form, form) for form in FORMS),
    ("uint8_nhwc", "float_nchw"),
    ("float_nhwc", "uint8_nchw"),
]
SIDES = (64, 96)
NODE_MODULES = Path(__file__).parents[2] / "web/node_modules"


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


def assert_no_gap(made: Format, asked: dict[str, Any]) -> None:
    """No placeholder is left in the snippets of a format, and each has the sides."""
    exporter = OnnxExporter(size=SIDES, about='{"style": "s", "version": "1"}', **asked)
    texts = snippets_of(made, exporter, 4).values()
    assert texts
    assert not [text for text in texts if "@" in text]
    assert all(str(side) in text for side in SIDES for text in texts)


def pictures(count: int) -> torch.Tensor:
    """Bitmaps of 64×96."""
    square = photos(count)
    return torch.cat([square, square.flip(3)[..., :32]], 3).mul(255).round().div(255)


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


def expected_bytes(source: ConversionSource) -> np.ndarray:
    output = output_of(source.folded, pictures(1)).numpy()
    return np.floor(in_form(output, "float255_nhwc")[0] + 0.5)


def run_python(format_: Format, source: ConversionSource, folder: Path) -> np.ndarray:
    texts = snippets_of(format_, source.exporter, 3)
    (folder / "code.py").write_text(texts["py"])
    run_snippet(folder)
    return np.asarray(Image.open(folder / "out.png"), float)


def run_snippet(folder: Path) -> None:
    """code.py as `python code.py photo.png out.png` there, in this process."""
    with chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["code.py", "photo.png", "out.png"])
        runpy.run_path("code.py", run_name="__main__")


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


def astronaut() -> Tensor:
    return to_tensor(centre_square(read_photo(demo_photos()[-1].path), 256))[None]


def difference(converted: ConvertedFormat, source: ConversionSource, folder: Path) -> float:
    """The largest, of one photo's output in the format's runtime to PyTorch's."""
    converted.convert(source, folder)
    run = converted.open(folder)
    assert run is not None
    photo, (input_form, output_form) = astronaut(), converted.forms(source.exporter)
    made = output_form.decode(run(input_form.encode(photo.numpy())))
    return float(np.abs(made - output_of(source.folded, photo).numpy()).max())
