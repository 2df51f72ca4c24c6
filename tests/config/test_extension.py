"""Settings and steps that a plug-in adds to a command."""

import sys
from dataclasses import asdict

import pytest

from distill.config import compose, registry
from distill.config.arguments import TypedKeys
from distill.config.command import Command
from distill.config.extension import extended, extensions
from distill.config.settings.commands import CheckSettings
from distill.config.settings.training import Train
from distill.core import plugins
from distill.core.errors import DistillError

PLUGIN = """
from dataclasses import dataclass
from distill.config.command import Command
from distill.config.extension import Extension
from distill.config.settings.base import PathText, Settings, setting

@dataclass(frozen=True, kw_only=True)
class Notes(Settings):
    notes: PathText | None = setting("where to note it")
    width: int = setting("of a note")

class Noting(Extension):
    settings = Notes
    def takes(self, settings):
        return settings.notes is not None
    def carry_out(self, settings):
        print("noted", settings.notes, settings.width)

class Other: ...
"""
DEFAULTS = "# @package _global_\n# Notes.\nnotes: null\nwidth: 3\n"


@pytest.fixture
def notes(tmp_path, monkeypatch):
    """A function that puts a plug-in `notelab` there, which extends two commands."""
    monkeypatch.setenv(plugins.NAMED, "")
    monkeypatch.syspath_prepend(tmp_path)

    def put(extension="Noting"):
        for command in ("check", "train"):
            (tmp_path / f"notelab/conf/{command}").mkdir(parents=True)
            (tmp_path / f"notelab/conf/{command}/notes.yaml").write_text(DEFAULTS)
        extends = "".join(f"  {name}: notelab.parts.{extension}\n" for name in ("check", "train"))
        (tmp_path / "notelab/__init__.py").touch()
        (tmp_path / "notelab/parts.py").write_text(PLUGIN)
        (tmp_path / "notelab/conf/plugin.yaml").write_text(f"contract: 1\nextends:\n{extends}")
        plugins.name_plugins("notelab")

    yield put
    for name in ("notelab", "notelab.parts"):
        sys.modules.pop(name, None)


def test_without_a_plug_in_a_command_is_as_it_is():
    assert extensions("check") == []
    assert extended("check", CheckSettings) is CheckSettings


def test_its_settings_stand_beside_those_of_the_command(notes):
    notes()
    plain = compose.load("check", ["output=x"], CheckSettings)
    assert isinstance(plain, CheckSettings)
    assert (plain.notes, plain.width, plain.output) == (None, 3, "x")
    assert compose.load("check", ["notes=a.txt", "width=4"], CheckSettings).width == 4
    with pytest.raises(DistillError, match=r"^width='x': input should be a valid integer"):
        compose.load("check", ["width=x"], CheckSettings)
    with pytest.raises(DistillError, match="no such setting; did you mean notes"):
        compose.load("check", ["note=1"], CheckSettings)
    assert "notes" in TypedKeys(extended("check", CheckSettings)).paths
    assert compose.load("train", ["width=5"], registry.schema_of).width == 5

    saved = asdict(compose.load("train", [], registry.schema_of))
    assert type(registry.settings_of(saved)) is Train  # a run is read without the plug-in


def test_what_its_settings_ask_for_is_done_in_place_of_the_command(notes, capsys):
    notes()
    task = lambda settings: print("checked", settings.width)  # noqa: E731
    run = Command("check", CheckSettings, task).carry_out
    run(compose.load("check", [], CheckSettings))
    run(compose.load("check", ["notes=a b"], CheckSettings))
    assert capsys.readouterr().out == "checked 3\nnoted a b 3\n"


def test_help_lists_them_and_a_command_does_them(notes, capsys, monkeypatch):
    notes()
    command = Command("check", CheckSettings, lambda settings: print("checked"))
    assert "where to note it" in command.help()
    for words in ([], ["notes=b"]):
        monkeypatch.setattr(sys, "argv", ["distill.check", *words])
        command()
    assert capsys.readouterr().out == "checked\nnoted b 3\n"


def test_a_class_that_is_none_is_said(notes):
    notes("Other")
    with pytest.raises(
        DistillError, match=r"^extends\._target_=notelab\.parts\.Other: is no Exten"
    ):
        compose.load("check", [], CheckSettings)
