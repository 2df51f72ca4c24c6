"""distill.check as typed."""

import json

import pytest
from onnx import helper

from distill.check import __main__ as check
from distill.models import zoo
from support.commands import run
from support.device_graphs import clean, save, weight


@pytest.fixture
def graph_files(tmp_path, monkeypatch):
    """good.onnx, bad.onnx (two groups, opset 11) and broken.onnx in the working folder."""
    monkeypatch.chdir(tmp_path)
    save(clean(), tmp_path).rename("good.onnx")
    model = clean(opset=11)
    model.graph.node[0].attribute.append(helper.make_attribute("group", 2))
    model.graph.initializer[0].CopyFrom(weight("w", 4, 2, 1, 1))
    save(model, tmp_path).rename("bad.onnx")
    (tmp_path / "broken.onnx").write_bytes(b"")
    return tmp_path


def test_a_file_that_fits(graph_files, capsys):
    assert run(check, "good.onnx") == 0
    said = capsys.readouterr()
    assert "snapml: fits, 1 note" in said.out
    assert "Lens Studio import settings" in said.out
    assert said.err == ""


def test_a_finding_is_status_1_with_its_source(graph_files, capsys):
    assert run(check, "bad.onnx") == 1
    said = capsys.readouterr()
    assert "snapml: 1 finding, 2 notes" in said.out
    assert "neither plain nor depthwise" in said.out
    assert '"Compatibility"' in said.out
    assert said.err == "error: 1 of 1 do not fit snapml\n"


def test_the_rest_goes_on_past_a_broken_file(graph_files, capsys):
    assert run(check, "broken.onnx", "good.onnx", "none.onnx") == 1
    said = capsys.readouterr()
    assert "good.onnx" in said.out
    lines = said.err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["skipped", "skipped", "error"]
    assert lines[-1] == "error: 2 cannot be read"


def test_the_report_has_every_node(graph_files):
    assert run(check, "bad.onnx", "broken.onnx", "-o", "out/report.json") == 1
    report = json.loads((graph_files / "out/report.json").read_text())
    assert (report["profile"], report["ok"]) == ("snapml", False)
    bad, broken = report["files"]
    assert [f["node"] for f in bad["findings"]] == ["conv"]
    assert {"what", "why", "source", "advice"} <= bad["findings"][0].keys()
    assert bad["operators"] == {"Add": 1, "Conv": 2, "Relu": 1, "Sigmoid": 1}
    assert broken["file"] == "broken.onnx"
    assert "not an ONNX file" in broken["error"]


def test_import_settings_of_a_shipped_student(graph_files, capsys):
    path = zoo.find("whitebox")
    assert run(check, str(path), "output=report.json") == 0
    said = capsys.readouterr().out
    assert "RGB: scale 0.00392157, bias 0" in said
    assert "scale 255, bias 0 (values 0 … 1)" in said
    settings = json.loads((graph_files / "report.json").read_text())["files"][0]["import"]
    assert settings["input_scale"] == pytest.approx(1 / 255)
    assert settings["output_scale"] == 255
    assert settings["ours"]


def test_the_report_tells_files_of_one_name_apart(graph_files):
    (graph_files / "a").mkdir()
    (graph_files / "good.onnx").rename("a/student.onnx")
    (graph_files / "bad.onnx").rename("student.onnx")
    assert run(check, "a/student.onnx", "student.onnx", "output=report.json") == 1
    files = json.loads((graph_files / "report.json").read_text())["files"]
    assert [each["file"] for each in files] == ["a/student.onnx", "student.onnx"]


def test_names_of_dimensions_are_no_markup(graph_files, capsys):
    model = clean()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "[/b]"
    save(model, graph_files)
    assert run(check, "model.onnx") == 1
    assert "input  x [/b]×4×8×8" in capsys.readouterr().out


@pytest.mark.parametrize("profile", ["snapml", "coreml", "nnapi", "web"])
def test_a_weight_of_the_wrong_length_is_a_finding(profile, graph_files, capsys):
    model = clean(opset=11)
    model.graph.initializer[0].raw_data = b"abc"
    save(model, graph_files)
    assert run(check, "model.onnx", f"profile={profile}") == 1
    assert "no valid ONNX" in capsys.readouterr().out


def test_other_profiles_have_no_lens_settings(graph_files, capsys):
    assert run(check, "good.onnx", "profile=web") == 0
    assert "Lens Studio" not in capsys.readouterr().out


def test_nothing_named_and_an_unknown_profile_are_one_line(graph_files, capsys):
    assert run(check) == 1
    assert capsys.readouterr().err.startswith("error: no file named")
    assert run(check, "good.onnx", "profile=palm") == 1
    said = capsys.readouterr().err
    assert said.startswith("error: profile=palm: no such choice; allowed: profile=coreml, profile=")
    assert len(said.splitlines()) == 1
