"""Old names of modules: in saved settings, in imports, of distill's own and of a plug-in's."""

import pickle
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

import distill
from distill.core import plugins
from distill.core.errors import DistillError
from distill.core.moved import MOVED, current_name, with_current_names
from distill.core.nodes import check_part, class_of
from distill.data.datamodule import data_module
from distill.export.onnx import OnnxExporter
from distill.models.teachers.teacher import Teacher
from distill.train import schedules


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A plug-in `oldlab` that took over two modules and a package of distill."""
    monkeypatch.setenv(plugins.NAMED, "")
    monkeypatch.syspath_prepend(tmp_path)
    moved = {"distill.models.old_teacher": "oldlab.teacher", "distill.old_room": "oldlab.room",
             "distill.data.Old": "oldlab.teacher.Dark"}  # fmt: skip
    (tmp_path / "oldlab/conf").mkdir(parents=True)
    (tmp_path / "oldlab/room").mkdir()
    for name in ("__init__", "room/__init__", "room/door"):
        (tmp_path / f"oldlab/{name}.py").write_text("class Key: ...\n")
    (tmp_path / "oldlab/room/__main__.py").write_text("print(__name__)\n")
    (tmp_path / "oldlab/teacher.py").write_text(
        "from distill.models.teachers.teacher import Teacher\nclass Dark(Teacher): ...\n"
    )
    (tmp_path / "oldlab/conf/plugin.yaml").write_text(
        yaml.safe_dump({"contract": 1, "moved": moved})
    )
    plugins.name_plugins("oldlab")
    yield tmp_path
    for name in [*sys.modules]:
        if name.startswith(("oldlab", "distill.old_room", "distill.models.old_teacher")):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "now"),
    [
        ("distill.training.schedules.cosine", schedules.cosine),
        ("distill.exporters.onnx.OnnxExporter", OnnxExporter),
        ("distill.data.loaders.data_module", data_module),
    ],
)
def test_a_class_is_found_by_the_name_that_an_earlier_run_has_for_it(name, now):
    assert class_of("node", {"_target_": name}) is now


def test_saved_settings_name_classes_where_they_lie_now():
    """Down to nodes inside of others; other values stay as they are."""
    inner = {"_target_": "distill.training.schedules.linear", "name": "distill.training.schedules"}
    saved = {"schedule": inner, "list": [inner, 1], "decoder": {"_target_": "distill.x.Y"}}
    current = inner | {"_target_": "distill.train.schedules.linear"}
    assert with_current_names(saved) == saved | {"schedule": current, "list": [current, 1]}


def test_a_module_that_moved_is_gone_and_its_new_place_is_there():
    ours = {f"distill.{old}": f"distill.{new}" for old, new in MOVED.items()}
    for old, new in (ours | plugins.moved()).items():
        package, _, name = new.rpartition(".")
        inside = not package or find_spec(package).submodule_search_locations is not None
        assert find_spec(new) if inside else hasattr(import_module(package), name)
        place = Path(plugins.__file__).parents[2].joinpath(*old.split("."))
        assert not place.with_suffix(".py").exists()
        assert not [*place.rglob("*.py")]


def test_a_plug_in_takes_over_modules_and_classes(lab):
    assert current_name("distill.models.old_teacher.Dark") == "oldlab.teacher.Dark"
    assert current_name("distill.data.Old") == "oldlab.teacher.Dark"
    assert current_name("distill.models.old_teachers.X") == "distill.models.old_teachers.X"
    node = {"_target_": "distill.models.old_teacher.Dark"}
    check_part(node, "distill.models.teachers", Teacher)
    assert class_of("teacher", node).__module__ == "oldlab.teacher"
    with pytest.raises(DistillError, match=r"oldlab\.teacher\.Teacher: refused; is no class of"):
        check_part({"_target_": "distill.models.old_teacher.Teacher"}, "distill.models", Teacher)


def test_an_old_import_warns_and_gives_the_module_itself(lab):
    with pytest.warns(DeprecationWarning, match=r"distill\.models\.old_teacher is oldlab\.teacher"):
        from distill.models import old_teacher  # type: ignore[attr-defined]
    assert old_teacher is import_module("oldlab.teacher")
    with pytest.warns(DeprecationWarning, match=r"distill\.old_room\.door is oldlab"):
        door = import_module("distill.old_room.door")
    assert door.Key is import_module("oldlab.room.door").Key
    assert import_module("distill.old_room").Key is import_module("oldlab.room").Key
    assert pickle.loads(b"cdistill.old_room.door\nKey\n.") is door.Key  # a class, by its name


def test_a_folder_that_an_earlier_version_left_behind_is_no_package(lab, monkeypatch):
    (lab / "earlier/old_room/__pycache__").mkdir(parents=True)
    monkeypatch.setattr(distill, "__path__", [*distill.__path__, str(lab / "earlier")])
    with pytest.warns(DeprecationWarning, match=r"distill\.old_room is oldlab\.room"):
        assert import_module("distill.old_room").Key is import_module("oldlab.room").Key


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["distill.nowhere", "distill.old_room.window", "nowhere_at_all"])
def test_what_is_nowhere_is_not_there(lab, name):
    with pytest.raises(ModuleNotFoundError, match="No module named"):
        import_module(name)


@pytest.mark.slow
def test_a_command_runs_by_its_old_name(lab):
    environment = {
        "PYTHONPATH": f"{lab}:{':'.join(filter(None, sys.path))}",
        plugins.NAMED: "oldlab",
    }
    command = [sys.executable, "-W", "ignore", "-m", "distill.old_room"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.stdout, done.stderr) == ("__main__\n", "")
