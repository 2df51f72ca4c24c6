"""One student, one picture: whichever way it is called, at every size, to one level of 255.

The element and the page are compared in tests/distill_lens/browser (test_element,
test_full_size)."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from PIL import Image
from skimage.data import astronaut

import distill
from distill.core.sessions import open_session, picture_call
from distill.export.format import Float32
from distill.export.onnx import OnnxExporter
from distill.export.snippets import snippets_of
from distill.models.batchnorm import fold_batchnorm
from distill.models.teachers.teacher import at_any_size
from distill.runs.published_student import PublishedStudent
from distill.stylize import __main__ as stylize
from support.commands import run
from support.export_trials import run_snippet


@pytest.mark.slow
@pytest.mark.parametrize("size", [(256, 256), (512, 512), (300, 260)])
@pytest.mark.parametrize("name", ["whitebox", "hayao"])  # without and with global statistics
def test_snippet_file_command_and_api(name, size, here):
    photo = Image.fromarray(astronaut()).resize(size)
    photo.save("photo.png")
    values = np.asarray(photo).transpose(2, 0, 1)[None].astype(np.float32) / 255
    network = fold_batchnorm(PublishedStudent.shipped(name).student)
    with torch.inference_mode():
        expected = 255 * at_any_size(network, torch.from_numpy(values))[0].permute(1, 2, 0).numpy()
    made = {"loaded": np.asarray(distill.load(name)(photo))}
    for kind, exporter in {
        "static": OnnxExporter(18, size[::-1], profile="any"),
        "dynamic": OnnxExporter(18, profile="any", dynamic=True),
    }.items():
        file = Path(f"{kind}.onnx")
        model = Float32().in_forms(exporter.export(network), exporter, 3)
        onnx.save(model, file)
        snippet = snippets_of(Float32(kind), exporter, 3)["py"]
        Path("code.py").write_text(snippet)
        run_snippet(Path())
        made[f"{kind}, snippet"] = np.asarray(Image.open("out.png"))
        if kind == "static":
            output = picture_call(open_session(model, 1))(values)[0].transpose(1, 2, 0)
            made["static, ONNX Runtime"] = 255 * output
        assert run(stylize, "photo.png", f"model={file}", "-o", "stylized.png") == 0
        made[f"{kind}, command"] = np.asarray(Image.open("stylized.png"))
        made[f"{kind}, loaded"] = np.asarray(distill.load(file)(photo))
    off = {way: float(np.abs(each - expected).max()) for way, each in made.items()}
    assert max(off.values()) <= 1, json.dumps(off)


def test_a_dynamic_file_says_what_its_sides_are():
    exporter = OnnxExporter(dynamic=True, profile="any")
    model = exporter.export(fold_batchnorm(PublishedStudent.shipped("whitebox").student))
    for value in (model.graph.input[0], model.graph.output[0]):
        dims = value.type.tensor_type.shape.dim
        assert [dim.dim_param for dim in dims][2:] == ["32*height", "32*width"]
    about = Float32().about(exporter, 3)
    assert about["input"]["shape"] == ["batch", 3, "32*height", "32*width"]
    snippets = snippets_of(Float32(), exporter, 3)
    assert "fill others up" in snippets["mjs"]
    assert "fill others up" in snippets["cpp"]
