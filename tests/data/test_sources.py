"""Which photos, which set and which split the settings mean."""

import json
import warnings
from pathlib import Path

import pytest

from distill.config import compose
from distill.config.arguments import TypedKeys, overrides_of
from distill.config.settings.training import Prepare, Train, source_of
from distill.core.errors import DistillError
from distill.data.kinds import registry
from distill.data.kinds.source import Source
from distill.data.pairs import find_pairs
from distill.models import build
from distill.prepare import __main__ as prepare
from distill.prepare import labelling
from distill.train import __main__ as train
from distill.train import student_training
from support.commands import run
from support.labelling import add, add_copies, sides

SMALL = ["style.resolution=64", "label.workers=0", "data.val_fraction=0.3"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A working folder with photos in folders `a`, `b`, and `v`, and one whose name is odd."""
    monkeypatch.chdir(tmp_path)
    add(tmp_path / "a", *range(12))
    add(tmp_path / "b", *range(20, 26))
    add(tmp_path / "v", *range(40, 46))
    add(tmp_path / "odd, [name]'s", *range(60, 66))
    return tmp_path


def typed(*arguments, name="prepare", schema=Prepare):
    overrides = overrides_of([*arguments, *SMALL], TypedKeys(schema))
    return compose.load(name, overrides, schema)


# What is typed


@pytest.mark.parametrize(
    ("argument", "photos"),
    [
        ("photos=a", "a"),
        ("photos=[a]", ["a"]),
        ("photos=[a,b]", ["a", "b"]),
        ("photos=[a, two words, c(d)]", ["a", "two words", "c(d)"]),
        ("photos=['x, y',b]", ["x, y", "b"]),
        ("photos=odd, [name]'s", "odd, [name]'s"),
        ("""photos=["odd, [name]'s",b]""", ["odd, [name]'s", "b"]),
        ("photos=[/tmp/ü b/c,~/d]", ["/tmp/ü b/c", "~/d"]),
    ],
)
def test_folders_are_taken_as_typed(argument, photos):
    assert typed(argument).photos == photos


def test_weights_must_be_positive():
    with pytest.raises(DistillError, match=r"data\.weights\.1=-1.*greater than 0"):
        typed("photos=[a,b]", "data.weights=[1,-1]")


# Names of sets


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["photos=a"], "toon-a-64"),
        (["photos=[a]"], "toon-a-64"),
        (["photos=[a,b]"], "toon-a+b-64"),
        (["photos=[a,b]", "crop=0.8"], "toon-a+b-64-crop80"),
        (["photos=[a,b]", "val_photos=v"], "toon-a+b-val-v-64"),
        (["photos=a", "val_photos=[v,b]"], "toon-a-val-v+b-64"),
        (["data=demo", "photos=[a,b]"], "toon-demo-64"),
        (["photos=[a,b]", "data.root=mine"], "mine"),
    ],
)
def test_the_set_is_named_after_its_folders(arguments, name):
    assert registry.data_source(typed(*arguments)).folder.name == name


# Said before anything is computed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["photos=[a,nowhere]"], "photos=nowhere: no such folder"),
        (["photos=a", "val_photos=nowhere"], "val_photos=nowhere: no such folder"),
        (["photos=a", "val_photos=a"], "a: named twice"),
        (["photos=a", "drop=nowhere.txt"], "drop=nowhere.txt: no such file"),
        (["photos=[a,b]", "data.weights=[1]"], "1 weight, but the photos come from 2 folders"),
        (["photos=a", "data.weights=[1,2]"], "2 weights, but the photos come from 1 folder;"),
        (["photos=a", "data.root=a/0.png/set"], "0.png: not a folder to write pairs into"),
    ],
)
@pytest.mark.parametrize("command", [prepare, train])
def test_what_is_wrong_is_one_line_before_the_teacher_is_loaded(
    capsys, monkeypatch, command, arguments, said
):
    for module in (build, student_training):
        monkeypatch.setattr(module, "load_teacher", lambda *_: pytest.fail("loaded"))
    assert run(command, *arguments, *SMALL) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert said in line
    assert not Path("data").exists()


# The whole way


def training(*arguments):
    quick = ["encoder.weights=none", "data.workers=0", "data.batch_size=2"]
    return typed(*arguments, *quick, name="train", schema=Train)


def data_of(settings):
    return labelling.label_and_load(settings, build.load_teacher(settings.style, settings.teacher))


def names(data):
    return {Path(photo.key).stem for photo in data.photos}


def test_evaluation_holds_out_what_training_on_the_fly_held_out(here):
    add_copies(here / "a", *range(6))
    (here / "drop").write_text("7.png\n")
    settings = training("photos=a", "data=photos", "drop=drop", "data.test_fraction=0.3")
    data = data_of(settings)
    assert not names(data.train) & names(data.val)
    source = source_of(settings)
    teacher = build.load_teacher(source.style, source.teacher)
    left = {Path(p.key).stem for p in labelling.split_on_the_fly(source, teacher)["test"]}
    add_copies(here / "a", *range(12), name="0 later {}")
    root = labelling.prepare_held_out(source, teacher, all_of_them=False)
    assert {path.name for path in root.iterdir() if path.is_dir()} == {"test"}
    pairs = find_pairs(root, "toon", 0.3, 0, 0.3)["test"]
    held_out = {p.name.rsplit("-", 1)[0] for p in pairs}
    seen = names(data.train) | names(data.val)  # learnt from, or the checkpoint chosen by
    of_seen = {f"copy_of_{n}" for n in seen} | {f"0_later_{n}" for n in seen}
    assert not held_out & (seen | of_seen)
    assert left
    assert {n.replace(" ", "_") for n in left} <= held_out
    assert "7" not in held_out | seen


def test_evaluation_of_two_sides_holds_out_those_of_validation(here):
    settings = training("photos=a", "data=photos", "data.test_fraction=0")
    data = data_of(settings)
    source = source_of(settings)
    teacher = build.load_teacher(source.style, source.teacher)
    root = labelling.prepare_held_out(source, teacher, all_of_them=False)
    found = find_pairs(root, "toon", 0.3, 0)
    assert {p.name.rsplit("-", 1)[0] for p in found["val"]} == names(data.val)
    assert not found["test"]


@pytest.mark.slow
def test_folders_for_validation_leave_two_sides(here):
    assert run(prepare, "photos=a", "val_photos=v", "data.test_fraction=0.2", *SMALL) == 0
    root = registry.data_source(typed("photos=a", "val_photos=v")).folder
    assert set(sides(root).values()) == {"train", "val"}
    assert json.loads((root / "dataset.json").read_text())["recipe"]["test_fraction"] == 0


@pytest.mark.parametrize(
    "arguments", [["data.test_fraction=0.7"], ["data.val_fraction=0.5", "data.test_fraction=0.5"]]
)
def test_something_must_be_left_to_train_on(arguments, capsys):
    # SMALL says 0.3 for validation.
    assert run(prepare, "photos=a", *SMALL, *arguments) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "error: data.test_fraction=" in line
    assert "nothing is left to train on" in line


@pytest.mark.campaign
def test_several_folders_with_weights_and_a_validation_folder(here):
    arguments = ["photos=[a,b]", "val_photos=v", "data.weights=[1,3]"]
    for kind in ("pairs", "photos"):
        data = data_of(training(*arguments, f"data={kind}"))
        assert len(data.val) == 6
        named = getattr(data.train, "pairs", None) or data.train.photos
        stems = [Path(getattr(n, "key", None) or n.name).stem.split("-")[0] for n in named]
        assert len(stems) == 18
        seen = [int(stems[data.train.index(p)]) for p in range(18)]
        assert sum(20 <= i < 26 for i in seen) in (13, 14)  # 3/4 of 18
    root = registry.data_source(training(*arguments)).folder
    assert set(sides(root).values()) == {"train", "val"}
    assert json.loads((root / "dataset.json").read_text())["recipe"]["val_folders"] == ["v"]


@pytest.mark.slow
def test_a_set_with_a_validation_folder_is_not_taken_for_one_without(capsys):
    assert run(prepare, "photos=[a,b]", "data.root=set", *SMALL) == 0
    assert run(prepare, "photos=[a,b]", "val_photos=v", "data.root=set", *SMALL) == 1
    assert "made with other settings" in capsys.readouterr().err


@pytest.mark.slow
def test_dropping_by_command_is_remembered_by_the_next(here, capsys):
    (here / "drop.txt").write_text("3.png\nnobody.jpg\n")
    with pytest.warns(UserWarning, match="drop: a line names no photo, 'nobody.jpg'"):
        assert run(prepare, "photos=a", "drop=drop.txt", *SMALL) == 0
    assert "; dropped by the list: 1" in capsys.readouterr().out
    (here / "drop.txt").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once, where the list was named
        data = data_of(training("photos=a"))
    assert not {"3"} & {pair.name.split("-")[0] for pair in [*data.train.pairs, *data.val.pairs]}


@pytest.mark.parametrize("key", ["drop", "restore"])
def test_a_picture_is_no_list(here, capsys, key):
    (here / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    assert run(prepare, "photos=a", f"{key}=p.png", *SMALL) == 1
    assert f"{key}=p.png: is no text; write one picture a line" in capsys.readouterr().err


def test_a_source_of_a_plug_in_that_lacks_a_method_is_one_line(monkeypatch):
    class Unfinished(Source):
        needs_labels = False

    monkeypatch.setattr(f"{__name__}.Unfinished", Unfinished, raising=False)
    monkeypatch.setattr(registry.plugins, "values", lambda *_: [f"{__name__}.Unfinished"])
    with pytest.raises(DistillError, match=r"^data.kind=mine: .*Unfinished has no .*training_sets"):
        registry.source_named("mine")
