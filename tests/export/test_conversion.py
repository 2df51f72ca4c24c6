"""distill.export with several formats, as a user types it, on a small run."""

import json
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from PIL import Image

from distill.config.compose import from_keywords
from distill.config.settings.commands import Export
from distill.core.errors import DistillError
from distill.data.photos import spread
from distill.export import __main__ as export
from distill.export import conversion, samples
from distill.export.format import Float32, Inference
from distill.export.fp16 import Float16
from distill.export.onnx import OnnxExporter
from distill.export.reports import Comparison, FormatRow
from support.commands import go, run
from support.export_photos import photos

PLAIN = FormatRow("onnx", ("student.onnx",), 1000, 900, 100.0, 100.0, 30.0, 5.0, (1.0, 1.0, 1.0))


def save(pictures: torch.Tensor, folder: Path, name: str) -> None:
    folder.mkdir()
    for number, picture in enumerate(pictures):
        pixels = (picture.permute(1, 2, 0).numpy() * 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / name.format(number))


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """A working folder with a run of one step, and 48 photos in calibration/."""
    folder = tmp_path_factory.mktemp("work")
    save(photos(16, seed=2), folder / "photos", "Person_{:04}.png")
    save(photos(48), folder / "calibration", "{:02}.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert go("trainer.max_steps=1") == 0
    return folder


@pytest.fixture
def trained(once, tmp_path, monkeypatch):
    """The export folder of such a run, in a working folder of the test's own."""
    shutil.copytree(once, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work/runs/toon-residual/export"


def typed(*more: str) -> int:
    return run(export, "exporter.size=64", "calibration=calibration", *more)


@pytest.mark.campaign
def test_all_there_in_one_table(trained, capsys):
    status = typed("formats=[onnx_int8,onnx_fp16,onnx_fp16]")
    said = capsys.readouterr()
    report = json.loads((trained / "formats.json").read_text())
    rows = {row["format"]: row for row in report["formats"]}
    assert list(rows) == ["onnx", "onnx_int8", "onnx_fp16"]  # as typed, once, float32 first
    assert status == (1 if rows["onnx_int8"]["mean"] < 37 or rows["onnx_int8"]["worst"] < 30 else 0)
    for row in rows.values():
        size = sum((trained / name).stat().st_size for name in row["files"])
        assert row["bytes"] == size
        assert 0 < row["gzip"] < size
        assert row["ms"] > 0
        assert row["teacher"] > 5
        assert row["worst"] <= row["mean"]
    assert rows["onnx"]["mean"] == pytest.approx(100, abs=1)
    assert 55 < rows["onnx_fp16"]["mean"] < rows["onnx"]["mean"]
    assert 20 < rows["onnx_int8"]["mean"] < rows["onnx_fp16"]["mean"]
    assert rows["onnx_fp16"]["bytes"] < 0.6 * rows["onnx"]["bytes"]
    assert "| onnx_int8 |" in (trained / "formats.md").read_text()
    assert "onnx_int8" in said.out
    assert not [p for p in trained.iterdir() if p.name.startswith(".")]


def test_unknown_names_end_before_anything_is_read(here, capsys):
    assert typed("formats=[onnx,onnx_int4]") == 1
    error = capsys.readouterr().err
    assert "formats=onnx_int4: no such choice; did you mean formats=onnx_" in error
    assert error.count("\n") == 1


@pytest.mark.slow
def test_a_missing_package_leaves_out_that_format_only(trained, monkeypatch, capsys):
    (trained / "student.mlpackage").mkdir(parents=True)  # of an earlier export
    monkeypatch.setitem(sys.modules, "coremltools", None)
    assert typed("formats=[coreml,onnx_fp16]") == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error == "error: coreml: needs coremltools; pip install 'distill[coreml]'"
    assert not (trained / "student.mlpackage").exists()
    assert (trained / "student_fp16.onnx").is_file()
    rows = json.loads((trained / "formats.json").read_text())["formats"]
    assert [row["verdict"] for row in rows if row["format"] == "coreml"] == ["not made"]


@pytest.mark.campaign
def test_few_photos_to_calibrate_on_do(trained, capsys):
    run(export, "exporter.size=64", "formats=onnx_int8")  # the run has learnt from 8
    said = "onnx_int8: calibrated on the 8 photos there are, and mirrored; 40 or more"
    assert said in capsys.readouterr().out
    assert (trained / "student.onnx").is_file()


@pytest.mark.slow
def test_one_of_any_size_is_counted_at_its_own(trained):
    def macs() -> int:
        checks = json.loads((trained / "report.json").read_text())["student"]
        return next(each["value"] for each in checks if each["name"] == "MACs")

    assert typed() == 0
    fixed = macs()
    assert typed("exporter.dynamic=true") == 0
    assert macs() == fixed > 0


@pytest.mark.slow
def test_a_converter_that_raises_is_one_line(trained, monkeypatch, capsys):
    def broken(*_: object) -> None:
        raise RuntimeError("no such\n operator" + 50 * " as this")

    monkeypatch.setattr("distill.export.fp16.halved", broken)
    assert typed("formats=onnx_fp16") == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert "onnx_fp16: its converter failed (RuntimeError: no such operator as this" in error
    assert len(error) < 300  # a converter may quote the whole graph
    assert not [p for p in trained.iterdir() if p.name.startswith(".")]


@pytest.mark.parametrize("step", [pytest.param("open", marks=pytest.mark.campaign), "run"])
@pytest.mark.slow
def test_a_file_that_its_runtime_refuses_is_not_left(step, trained, monkeypatch, capsys):
    def refuses(*_: object) -> None:
        raise RuntimeError("no\nkernel" + 300 * "!")

    opened = (lambda *_: refuses) if step == "run" else refuses
    monkeypatch.setattr("distill.export.fp16.Float16.open", opened)
    assert typed("formats=onnx_fp16") == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("error: onnx_fp16: ONNX Runtime cannot run it (no kernel!!!")
    assert len(error) < 300
    assert sorted(p.name for p in trained.iterdir()) == [
        "formats.json", "formats.md", "report.json", "snippets", "student.onnx",
    ]  # fmt: skip


@pytest.mark.slow
def test_a_dynamic_file_is_compared_at_another_size_too(trained, monkeypatch, capsys):
    opened = Float16.open

    def dark(self: Float16, folder: Path) -> Inference:
        run = opened(self, folder)
        return lambda photos: run(photos) * (photos.shape[-1] == 64)

    monkeypatch.setattr(Float16, "open", dark)
    assert typed("formats=onnx_fp16") == 0
    assert typed("formats=onnx_fp16", "exporter.dynamic=true") == 1
    assert "every fourth 288×352 too" in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.slow
def test_without_the_pairs_one_names_photos(trained, capsys):
    shutil.rmtree("data")
    assert typed("formats=onnx_fp16") == 1
    assert "the run's pairs are not here; name photos with photos=DIR" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (FormatRow("a", (), 500, 1, 60, 60, None, 9.0, (1.8, 1.7, 1.9)), "smaller"),
        (FormatRow("a", (), 990, 1, 60, 60, None, 4.0, (0.8, 0.7, 0.9)), "faster"),
        (FormatRow("a", (), 500, 1, 60, 60, None, 4.0, (0.8, 0.7, 0.9)), "smaller and faster"),
        (
            FormatRow("a", (), 985, 1, 60, 60, None, 4.9, (0.98, 0.9, 1.01)),
            "neither smaller nor faster",
        ),
        (FormatRow("a", (), 500, 1), "smaller; no runtime here"),
        (FormatRow("a", (), 2000, 1), "not smaller; no runtime here"),
        (FormatRow("a", problem="a: broke"), "not made"),
        (
            FormatRow("a", (), 500, 1, 38, 29, None, 9.0, (2, 2, 2), (37, 30)),
            "smaller; short of 37 dB mean, 30 worst",
        ),
    ],
)
def test_verdicts(row, words):
    assert row.verdict(PLAIN) == words


def test_what_falls_short_is_a_finding():
    facts = {"pictures": 2, "photos": "p", "size": [64, 64]}
    fine = FormatRow("a", (), 500, 1, 37, 30, None, 9.0, (2, 2, 2), (37, 30))
    poor = FormatRow("b", (), 500, 1, 36.96, 30, None, 9.0, (2, 2, 2), (37, 30))
    broken = FormatRow("c", (), 500, 1, np.nan, np.nan, None, 9.0, (2, 2, 2), (37, 30))
    lines = Comparison([PLAIN, fine, poor, broken], facts).lines
    assert [line[:3] for line in lines] == ["b: ", "c: "]


def test_a_row_is_measured_against_the_float_student():
    """A format whose output is 0.01 too bright is at 40 dB, by the formula."""
    picture = torch.full((1, 3, 8, 8), 0.5)
    held_out = samples.Samples(picture, picture + 0.1, "p")
    float32, times = Float32(), conversion.interleave({"onnx": lambda: None}, 2)
    float32.files = ()
    row = conversion._row(float32, [picture + 0.01], times, [picture], held_out, Path())
    assert row.mean == row.worst == pytest.approx(40, abs=1e-3)
    assert row.teacher == pytest.approx(-20 * np.log10(0.09), abs=1e-3)


@pytest.mark.parametrize(("count", "expected"), [(3, [0, 4, 9]), (20, list(range(10)))])
def test_spread_takes_from_first_to_last(count, expected):
    assert spread(range(10), count) == expected


def test_names_once_and_float32_first():
    typed = {"formats": ["ncnn", "onnx_fp16", "ncnn"]}
    formats = from_keywords("export", Export, {}, typed).formats
    assert formats is not None
    assert [f.name for f in conversion.formats_of(formats)] == ["onnx", "ncnn", "onnx_fp16"]
    with pytest.raises(DistillError, match="formats=onyx: no such choice"):
        from_keywords("export", Export, {}, {"formats": "onyx"})


@pytest.mark.slow
def test_an_export_that_is_interrupted_leaves_the_earlier_file(trained, monkeypatch):
    assert typed("formats=[onnx]") == 0
    earlier = (trained / "student.onnx").read_bytes()
    monkeypatch.setattr(OnnxExporter, "export", Mock(side_effect=KeyboardInterrupt))
    with suppress(KeyboardInterrupt):
        assert typed("formats=[onnx]", "exporter.size=96")
    assert (trained / "student.onnx").read_bytes() == earlier
    assert (trained / "report.json").is_file()
