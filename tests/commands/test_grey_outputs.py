"""channels=1 as a user types it: a network of mattes, its student, and the PNG that this writes."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image

import distill
from distill.eval_fid import __main__ as eval_fid
from distill.export import __main__ as export
from distill.stylize import __main__ as stylize
from support.commands import go, run
from support.saliency_networks import brightness

TAKES = ["teacher.input_range=[0,1]", "teacher.output_range=[0,1]"]


@pytest.mark.slow
def test_a_matte_from_photos_to_a_grey_png(here):
    matte = [
        "style=custom_onnx",
        "style.name=matte",
        f"style.weights={brightness(here / 'b.onnx')}",
    ]
    assert go(*matte, *TAKES, "channels=1", "trainer.max_steps=2", "loss=clean") == 0
    labels = [*Path("data/pairs").glob("*/*/stylized/*.png")]
    assert labels
    for label in labels:
        with (
            Image.open(label) as grey,
            Image.open(label.parents[1] / "photo" / label.name) as photo,
        ):
            assert grey.mode == "L"
            mean = np.asarray(photo, float).mean(2)
        assert np.abs(np.asarray(Image.open(label), float) - mean).max() <= 0.5 + 1e-3

    folder = Path("runs/matte-residual")
    assert run(export, "exporter.size=64", "formats=[onnx,onnx_uint8]") == 0
    file = folder / "export/student.onnx"
    output = onnx.load(file).graph.output[0].type.tensor_type.shape.dim
    assert [d.dim_value for d in output] == [1, 1, 64, 64]
    assert json.loads((folder / "export/report.json").read_text())["output"]["channels"] == "L"

    assert run(eval_fid, "features=none", "flicker=0", "bootstrap=0") == 0
    results = json.loads((folder / "eval/results.json").read_text())
    rows, lines = results["similarity"], results["drawing"]
    assert not lines
    assert 0 < rows["MAE, student to teacher"]["value"] < 1
    assert 0 <= rows["IoU at .5, student to teacher"]["value"] <= 1
    sheet = np.asarray(Image.open(folder / "eval/contact_sheet.png"))
    assert (sheet[30:, -60:] == sheet[30:, -60:, :1]).all()  # the student's column

    Image.new("RGB", (90, 70), (200, 40, 40)).save("red.jpg")
    Image.new("RGBA", (64, 64), (200, 40, 40, 99)).save("clear.png")
    assert run(stylize, "red.jpg", "clear.png", "run=matte-residual") == 0
    with Image.open("stylized/red-matte-residual.png") as made:
        assert (made.mode, made.size) == ("L", (90, 70))
    with Image.open("stylized/clear-matte-residual.png") as made:
        assert (made.mode, made.getextrema()[1]) == ("LA", (99, 99))
    with pytest.MonkeyPatch.context() as patch:  # the code beside the file, as an app has it
        patch.setattr("sys.argv", ["student_onnx.py", "../../../red.jpg", "made.png"])
        patch.chdir(folder / "export")
        exec(Path("snippets/student_onnx.py").read_text(), {})
        assert Image.open("made.png").mode == "L"
    student = distill.load(file)
    assert student(Image.open("red.jpg")).mode == "L"
    assert student(np.zeros((2, 40, 48, 3), np.uint8)).shape == (2, 40, 48, 1)


def test_a_network_of_others_is_run_as_it_is(tmp_path, monkeypatch):
    """Its values for photographs are not taken for another range, as those of a style would be."""
    monkeypatch.chdir(tmp_path)
    brightness(tmp_path / "b.onnx", scale=0.5, outputs=("y",))
    Image.new("RGB", (64, 64), (90, 120, 150)).save("photo.jpg", quality=100)
    assert run(stylize, "photo.jpg", "model=b.onnx", "threads=1") == 0
    with Image.open("stylized/photo-b.png") as made:
        assert made.mode == "L"
        assert np.abs(np.asarray(made, float) - 60).max() <= 1
