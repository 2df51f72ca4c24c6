"""A picture that was taken down: what learnt from it is published with a reason alone."""

import json

import pytest

from distill.export import __main__ as export
from distill.prepare import __main__ as prepare
from distill_hub import __main__ as hub
from distill_lens import __main__ as lens
from support.commands import SMALL, go, run


@pytest.mark.slow
def test_push_export_and_lens_ask_for_a_reason(here, capsys):
    assert go("run=two", "trainer.max_steps=1") == 0
    assert run(export, "run=two", "exporter.size=64") == 0
    root = next((here / "data/pairs").iterdir())
    learnt = [
        line.split("\t")[1] for line in (here / "runs/two/pairs.tsv").read_text().splitlines()
    ]
    (here / "drop.txt").write_text(f"{learnt[0]}\n")
    assert run(prepare, "photos=photos", *SMALL, "drop=drop.txt") == 0
    assert f"picture {learnt[0].removesuffix('.png')} " in (root / "takedown.txt").read_text()
    capsys.readouterr()
    assert run(prepare, "photos=photos", *SMALL, "crop=0.8") == 0  # another set of them
    assert (
        f"taken down of {root.relative_to(here)}: 1 picture of this set" in capsys.readouterr().out
    )
    reason = "takedown.accept=its photographer agrees"
    student = "runs/two/export/student.onnx"
    page = [f"students={student}", "serve=false", "output=page"]
    for command, *words in (
        (hub, "push", "run=two", "repo=./pub"),
        (export, "run=two"),
        (lens, *page),
        (lens, "run=two", *page[1:]),
    ):
        capsys.readouterr()
        assert run(command, *words) == 1
        error = capsys.readouterr().err
        assert "taken down: 1 picture that it learnt from" in error, words
        assert error.count("\n") == 1
    assert run(hub, "push", "run=two", "repo=./pub", reason) == 0
    assert "accepted: its photographer agrees" in (here / "pub/README.md").read_text()
    assert run(export, "run=two", "exporter.size=64", reason) == 0
    report = json.loads((here / "runs/two/export/report.json").read_text())
    assert "its photographer agrees" in json.dumps(report["terms"])
    assert run(lens, *page) == 0  # the file says so itself now
    assert "its photographer agrees" in (here / "page/manifest.json").read_text()
