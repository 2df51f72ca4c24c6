"""Files beside pictures that another package's plug-in takes."""

import sys
from pathlib import Path

import pytest

from distill.core import plugins
from distill.stylize import __main__ as stylize
from support.commands import run
from support.stylize_setup import files, put

PARTS = """
from distill.core.errors import DistillError
from distill.stylize.jobs import BadFile, FileKind, NotWhole

class Texts(FileKind):
    noun, suffixes, other = "text", frozenset({".txt", ".rst"}), ".txt"
    outputs = frozenset({".txt"})

    def check(self):
        if not self.installed:
            raise DistillError("texts need a typewriter")

    def stylise_file(self, job, setup):
        text = job.source.read_text()
        if not text:
            raise BadFile("is empty")
        job.target.parent.mkdir(exist_ok=True)
        job.target.write_text(text.upper())
        if "?" in text:
            raise NotWhole("a question is open")

    installed = True

class Other: ...
"""


@pytest.fixture
def textlab(shipped_students, monkeypatch):
    """A function that puts a plug-in `textlab` there."""
    monkeypatch.setenv(plugins.NAMED, "")
    monkeypatch.syspath_prepend(Path.cwd() / "packages")

    def put_there(name="Texts"):
        package = Path("packages/textlab")
        (package / "conf").mkdir(parents=True)
        (package / "parts.py").write_text(PARTS)
        manifest = f"contract: 1\nfiles: {{text: textlab.parts.{name}}}\n"
        (package / "conf/plugin.yaml").write_text(manifest)
        plugins.name_plugins("textlab")

    yield put_there
    for name in ("textlab", "textlab.parts"):
        sys.modules.pop(name, None)


def test_they_are_stylised_among_pictures(textlab, capsys):
    textlab()
    put("in/a.png")
    for name, text in {"b.txt": "ink", "c.rst": "line?", "d.txt": ""}.items():
        Path("in", name).write_text(text)
    assert run(stylize, "in", "-o", "out") == 1
    assert files("out") == ["a-hayao.png", "b-hayao.txt", "c-hayao.txt"]
    assert Path("out/b-hayao.txt").read_text() == "INK"
    errors = capsys.readouterr().err
    assert "'in/c.rst': stylised, but a question is open" in errors
    assert "skipped 'in/d.txt': is empty" in errors
    assert errors.endswith("error: 1 of 4 files skipped\n")


def test_what_they_need_and_their_names_are_said(textlab, capsys, monkeypatch):
    textlab()
    Path("b.txt").write_text("ink")
    Path("empty").mkdir()
    for typed, line in {
        ("b.txt", "-o", "x.rst"): "-o x.rst: a text is .txt; a folder's name ends with /",
        ("empty",): "empty: no pictures in it (jpg, png, webp, avif, tiff, bmp), and no text, and",
    }.items():
        assert run(stylize, *typed) == 1
        assert capsys.readouterr().err.startswith(f"error: {line}")
    monkeypatch.setattr("textlab.parts.Texts.installed", False)
    assert run(stylize, "b.txt") == 1
    assert capsys.readouterr().err == "error: texts need a typewriter\n"


def test_a_class_that_is_no_kind_is_said(textlab, capsys):
    textlab("Other")
    put("a.png")
    assert run(stylize, "a.png") == 1
    assert "files._target_=textlab.parts.Other: is no FileKind" in capsys.readouterr().err
