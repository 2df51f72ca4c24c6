"""What is typed behind a command, as Hydra is to read it: paths quoted, names on their own."""

from __future__ import annotations

import re

import pytest

from distill.config.arguments import TypedKeys, split_arguments
from distill.config.settings.commands import (
    Benchmark,
    CheckSettings,
    EvalFid,
    Export,
    HubSettings,
    Lens,
    Stylize,
)
from distill.config.settings.training import CycleGANTrain, Pix2PixTrain, Prepare, Train
from distill.core.errors import DistillError

WORDS = {"teacher.prompt", "teacher.negative_prompt"}  # quoted as paths are
TEACHER = WORDS | {
    f"teacher.{name}" for name in ("path", "folder", "pipeline", "controlnet", "lora")
}
LABELLED = {"photos", "val_photos", "drop", "data.root", "style.weights", *TEACHER}
PATHS = {
    (Train, Pix2PixTrain, CycleGANTrain): LABELLED
    | {"data.a", "data.b", "run", "runs", "sweep"},
    (Prepare,): LABELLED | {"sketch.mask", "sketch.hed.weights", "engine.address"},
    (Export,): {
        "run", "runs", "checkpoint", "output", "photos", "calibration", "tflite.python",
        "style.weights",
    },
    (EvalFid,): {"run", "runs", "checkpoint", "output", "photos", "a", "b", "style.weights"},
    (Stylize,): {"model", "run", "runs", "output"},
    (CheckSettings,): {"output"},
    (Benchmark,): {"model", "run", "runs", "output", *TEACHER, "style.weights"},
    (Lens,): {"students", "sketches", "run", "runs", "output"},
    (HubSettings,): {"run", "runs", "model", "data.root", "repo"},
}  # fmt: skip
LISTS = {"photos", "val_photos", "students", "sketches"}


@pytest.mark.parametrize("schemas", PATHS, ids=lambda schemas: schemas[0].__name__)
def test_the_settings_say_which_of_them_are_paths(schemas):
    keys = TypedKeys(*schemas)
    assert keys.paths == PATHS[schemas]
    one = {"photos"} if schemas[0] in (Export, EvalFid) else set()
    assert keys.lists == (LISTS & PATHS[schemas]) - one


def test_the_settings_say_which_of_them_are_names():
    assert {s.__name__: TypedKeys(s).names for s, *_ in PATHS if TypedKeys(s).names} == {
        "Prepare": {"recipe", "card"},
        "Stylize": {"style"},
    }


TYPED = {
    "photos=a/b": "photos=a/b",
    "photos=my faces (2)": "photos='my faces (2)'",
    "photos=[a b,c]": "photos=['a b','c']",
    "photos=it's": r"photos='it\'s'",
    "photos='a,b'": "photos='a,b'",
    "photos=": "photos=",
    "sketch.mask=x,y.onnx": "sketch.mask='x,y.onnx'",
    "run=toon-lines-seed=1": "run='toon-lines-seed=1'",  # as a sweep names it
    "recipe=pix2pix": "recipe.name=pix2pix",
    "style=toon": "style=toon",
    "crop=0.8": "crop=0.8",
}


@pytest.mark.parametrize("typed", TYPED)
def test_as_hydra_reads_it(typed):
    assert split_arguments([typed, "--cfg", "job"], TypedKeys(Train, Prepare), several=False) == (
        [TYPED[typed]],
        ["--cfg", "job"],
    )


@pytest.mark.parametrize(
    ("typed", "parted"),
    [
        ("model=a,b c.onnx", "model=a,'b c.onnx'"),
        ("model=glob(*)", "model=glob(*)"),
        ("style=hayao,toon", "style.name=hayao,toon"),
    ],
)
def test_of_several_values_each_is_quoted(typed, parted):
    assert split_arguments([typed], TypedKeys(Stylize), several=True) == ([parted], [])


def test_a_folder_of_that_very_name_is_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "[a,b]").mkdir()
    for several in (False, True):
        assert split_arguments(["photos=[a,b]"], TypedKeys(Train, Prepare), several) == (
            ["photos='[a,b]'"],
            [],
        )


@pytest.mark.parametrize("typed", ["=hayao", "+=hayao", "++=1", "~=", "+@x=y", "@=", "="])
@pytest.mark.parametrize("several", [True, False])
def test_a_value_without_a_key_ends_in_one_line(typed, several):
    with pytest.raises(DistillError, match=f"^{re.escape(typed)}: names no setting; write KEY="):
        split_arguments(["style=toon", typed], TypedKeys(Train, Prepare), several)
