"""tools/zoo.py: the card of a shipped student, from a run's files."""

import hashlib
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.summary.writer.record_writer import RecordWriter

from distill.config import compose
from distill.config.settings.training import Prepare
from distill.core.errors import DistillError
from distill.data.photo_table import HEAD, PHOTOS
from distill.data.photos import find_all
from distill.data.split import new_sides
from distill.models.zoo import shipped

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture
def card(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    import card

    yield card
    sys.modules.pop("card")


@pytest.fixture
def zoo(card):
    import zoo

    yield zoo
    sys.modules.pop("zoo")


def test_counts_photos_by_folder_and_side(card, tmp_path):
    rows = [
        "a\ttrain\t'x'\t0\t'a.jpg'\t",
        "b\tval\t'x'\t0\t'b.jpg'\t",
        "c\ttrain\t'y'\t0\t'c.jpg'\t",
    ]
    rows.append("d\t-\t'y'\t1\t'd.jpg'\tnear-duplicates on both sides")
    rows.append("e\ttest\t'y'\t0\t'e.jpg'\t")
    (tmp_path / PHOTOS).write_text(HEAD + "\n".join(rows) + "\n")
    assert card.counts(tmp_path) == {
        "x": {"train": 1, "val": 1, "test": 0},
        "y": {"train": 1, "val": 0, "test": 1},
    }


def test_hours_leave_out_pauses(card, tmp_path):
    """Two logs of a run that was stopped for a day, with a pause of an hour in the first."""
    folder = tmp_path / "tensorboard"
    folder.mkdir()
    for number, times in enumerate([[0, 300, 3900, 4200], [90000, 90600 - 1]]):
        with (folder / f"events.{number}").open("wb") as stream:
            writer = RecordWriter(stream)
            for time in times:
                writer.write(Event(wall_time=1e9 + time).SerializeToString())
    assert card.hours(tmp_path) == pytest.approx((300 + 300 + 599) / 3600)


def test_page_shows_every_figure_and_the_terms(card):
    interval = {"value": 28.123, "interval": [27.9, 28.4], "pictures": 4}
    facts = {
        "style": "ink",
        "width": 0.35,
        "decoder": "detail",
        "training": [
            {"loss": {"l1": 1.0, "sobel": 6.0}, "lr": 0.003, "ema": 0.999}
            | {"steps": 1000, "batch": 16, "pictures seen": 16000, "hours": 1.25},
            {"loss": {"l1": 0.5}, "lr": 0.001, "ema": 0.99}
            | {"steps": 100, "batch": 8, "pictures seen": 800, "hours": 0.25},
        ],
        "hardware": "1 thread of a CPU",
        "torch": "2.15",
        "data": {"faces": {"train": 3000, "val": 1000}},
        "shares": None,
        "teacher": {"file": "ink.pt", "sha256": "0", "source": "somewhere", "licence": "by-nc"}
        | {"settings": {"hatching": 0.0}},
        "terms": "commercial use not allowed (by-nc)",
        "cost": {"macs": 1000, "parameters": 10, "living": 0.5, "bytes": 99}
        | {"ms": {"value": 3.0, "low": 2.0, "high": 4.0}, "ratio": {"value": 0.7}},
        "held out": {"faces": 4},
        "scores": {
            "faces": {
                "photo": {"SSIM": {"value": 0.5}},
                "ink": {"PSNR (dB)": interval, "ink recall": {"value": 0.75}},
                "teacher": {"flicker, pan (levels)": {"value": 1.25}},
            }
        },
        "sizes": {"512": {"pictures": 3, "scores": {"ink": {"SSIM": {"value": 0.875}}}}},
        "features": None,
        "limits": "Eyes are softer.",
        "use": "model=ink.onnx",
    }
    page = card.page(facts)
    for said in (
        "faces (3,000 + 1,000 held out)",
        "MobileNetV2-0.35, decoder detail",
        "1,000 steps of 16 (16,000 pictures seen), loss 1 l1 + 6 sobel, learning rate 0.003, "
        "average 0.999; then 100 steps of 8 (800 pictures seen), loss 0.5 l1",
        "1.50 h on 1 thread of a CPU",
        "teacher: ink.pt, somewhere, hatching=0",
        "inherits the terms of all that it was made from: commercial use not allowed (by-nc).",
        "**faces**, 4 pictures",
        "| ink | – | 28.1 (27.9 – 28.4) |",
        "**faces**, lines and flicker, 4 pictures",
        "| ink | 0.75 | – |\n| teacher | – | 1.25 |",
        "| long side | output | SSIM |\n| --- | --- | --- |\n| 512 (3 pictures) | ink | 0.875 |",
        "nonzero weights: 50.0%",
        "3.00 ms (2.00 – 4.00)",
        "×0.70",
        "`python -m distill.stylize photo.jpg model=ink.onnx`",
        "Eyes are softer.",
    ):
        assert said in page
    assert "by their long side" not in card.page(facts | {"sizes": {}})


def test_scores_are_kept_for_the_same_run_and_students(zoo, tmp_path):
    run, file = tmp_path / "run", tmp_path / "fidelity.json"
    (run / "checkpoints").mkdir(parents=True)
    (run / "checkpoints/last.ckpt").touch()
    assert not zoo.scored(file, run, ["ink"])
    file.write_text('{"figures": {"cost": {"paper": {}, "ink": {}}}}')
    os.utime(run / "checkpoints/last.ckpt", (1, 1))
    assert zoo.scored(file, run, ["paper", "ink"])
    assert not zoo.scored(file, run, ["ink"])
    os.utime(file, (0, 0))
    assert not zoo.scored(file, run, ["paper", "ink"])


def test_weights_of_one_s_own_are_named_in_the_card(card):
    style = compose.load("prepare", ["style=hayao"], Prepare).style
    style = replace(style, file="known.pt", sha256="ab", source="here", licence="by", weights=None)
    known = {"file": "known.pt", "sha256": "ab", "source": "here", "licence": "by"}
    assert card.teacher_of(style) == known
    own = card.teacher_of(replace(style, weights="folder/mine.onnx"))
    assert own == known | {"file": "mine.onnx", "sha256": None}


def test_figures_of_a_card_have_five_digits(card):
    assert card.rounded({"a": [1.23456789, 7], "b": "1.23456789"}) == {
        "a": [1.2346, 7],
        "b": "1.23456789",
    }


RECIPES = sorted(path.stem for path in (TOOLS.parent / "campaigns/zoo").glob("*.yaml"))
OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in RECIPES if name != "computed"]


@pytest.mark.parametrize("name", ["computed", *OTHERS])
def test_every_stage_of_a_recipe_is_words_of_distill_train(zoo, name, monkeypatch):
    """And each begins with the stage before, or another student's, of the same widths."""
    kinds = {"network": "paprika", "computed": "oil", "picture": "swirl"}
    this = zoo.recipe(kinds.get(name, name))
    if name in kinds:
        text = (zoo.RECIPES / f"{name}.yaml").read_text().replace("${NAME}", kinds[name])
        this = zoo.Recipe(kinds[name], **zoo.yaml.safe_load(text))
    place = "data.root=x" if this.sketches or this.domains else "photos=x"
    widths = []

    def settings_of(words):
        every = {word.partition("=")[0]: word for word in words}
        settings = compose.load("train", [*every.values(), place], zoo.schema_of)
        if hasattr(settings, "decoder"):
            build = settings.decoder.build
            widths.append([build[key] for key in ("half", "quarter", "eighth", "blocks")])
        return settings

    if this.start:
        other = zoo.recipe(this.start["student"])
        settings_of([*other.words, *other.stages[this.start["stage"] - 1]])
    for number, stage in enumerate(this.stages, 1):
        if "mean" in stage:
            assert max(stage["mean"]) < number
            continue
        if "prune" in stage:
            assert stage["prune"][0] in ("--half", "--expansion")
            assert all(each == widths[0] for each in widths)
            widths.clear()
            continue
        assert settings_of([*this.words, *stage]).trainer.max_steps > 1
    if this.domains:
        student = [*this.student, "teacher.path=x", "init=x.onnx", "photos=x"]
        assert compose.load("train", student, zoo.schema_of).teacher["path"] == "x"
        assert all(map(zoo.listed, (*this.domains, this.photos, this.test)))
    assert all(each == widths[0] for each in widths)


def test_every_student_of_the_package_has_a_recipe():
    assert {*shipped()} <= {*RECIPES}


@pytest.fixture
def runs(zoo, monkeypatch, tmp_path):
    """Typed trainings instead of real ones, each with a checkpoint of one weight: its number."""
    typed = []

    def train(words):
        settings = compose.load("train", words, zoo.schema_of)
        run = Path(settings.runs) / settings.run
        (run / "checkpoints").mkdir(parents=True)
        typed.append(words)
        weight = torch.tensor([float(len(typed))])
        averaged = {"callbacks": {"StudentEMA": {"average": {"w": weight}}}, "state_dict": {}}
        torch.save(averaged, run / zoo.LAST)
        return settings

    monkeypatch.setattr(zoo, "train", train)
    monkeypatch.chdir(tmp_path)
    return typed


def arguments(photos, steps=1.0):
    return SimpleNamespace(photos=str(photos), steps=steps)


def test_stages_start_from_those_before_and_means(zoo, runs, monkeypatch, tmp_path):
    (tmp_path / "photos").mkdir()
    first, two = ["trainer.max_steps=100"], ["style=toon", "lr=1e-3", "trainer.max_steps=50"]
    recipes = {
        "a": zoo.Recipe("a", ["style=ink", "lr=2e-3"], [first, two, {"mean": [1, 2]}, first]),
        "b": zoo.Recipe("b", ["style=neon"], [first], start={"student": "a", "stage": 3}),
        "c": zoo.Recipe("c", ["style=toon"], [first, {"prune": ["--half", "12"]}, first]),
    }
    monkeypatch.setattr(zoo, "recipe", recipes.get)
    for name in recipes:
        monkeypatch.setattr(zoo, "RECIPES", tmp_path)
        (tmp_path / f"{name}.yaml").touch()
    settings, run = zoo.stages(recipes["b"], ["ema=0.9"], arguments("photos", 0.1))
    assert [words[-1] for words in runs] == ["run=zoo-a-1", "run=zoo-a-2", "run=zoo-b-1"]
    assert {"style=toon", "lr=1e-3", "trainer.max_steps=5", "ema=0.9"} <= {*runs[1]}
    assert (run.name, settings.style.name) == ("zoo-b-1", "neon")
    assert "init='runs/zoo-a-1/checkpoints/last.ckpt'" in runs[1]
    assert "init='runs/zoo-a-3/checkpoints/last.ckpt'" in runs[2]
    mean = torch.load("runs/zoo-a-3/checkpoints/last.ckpt", weights_only=True)
    assert mean["callbacks"]["StudentEMA"]["average"]["w"] == 1.5
    commands = []
    monkeypatch.setattr(zoo, "command", lambda *words: commands.append(words[1:]))
    zoo.stages(recipes["c"], [], arguments("photos"))
    last, file = "runs/zoo-c-1/checkpoints/last.ckpt", "runs/zoo-c-2.safetensors"
    assert commands == [(last, file, "--photos", "photos", "--half", "12")]
    assert f"init='{file}'" in runs[-1]


def test_only_the_listed_photos_are_taken_where_some_are_there(zoo, tmp_path, capsys):
    for name in ("a.png", "b.png", "c.png"):
        (tmp_path / name).write_bytes(name.encode())
    listed = {hashlib.sha256(name).hexdigest()[:12] for name in (b"a.png", b"c.png", b"gone.png")}
    assert zoo.others([tmp_path], listed) == ["b.png"]
    assert capsys.readouterr().out == "photos: 2 of the recipe's 3, besides them 1\n"
    assert zoo.others([tmp_path], {"0" * 12}) == []


def test_an_unknown_name_lists_what_there_is(zoo):
    with pytest.raises(DistillError, match=r"hayoa: no student or style; there are .*hayao"):
        zoo.recipe("hayoa")


def test_squares_of_a_domain_lie_in_the_picture(zoo):
    assert zoo.squares(100, 100, closer=False) == [(0, 0, 100, 100)]
    assert zoo.squares(150, 100, closer=False) == [(0, 0, 100, 100), (50, 0, 150, 100)]
    assert zoo.squares(100, 200, closer=True)[2:] == [
        (0, 100, 100, 200), (0, 39, 68, 107), (32, 39, 100, 107), (16, 79, 84, 147),
    ]  # fmt: skip


def test_photos_held_out_of_a_domain_are_in_no_other_list(zoo):
    held_out = zoo.listed("day-test") | zoo.listed("evening-test")
    assert len(held_out) == 54
    for learnt in ("day", "evening", "evening-student"):
        assert not held_out & zoo.listed(learnt)


def test_lists_hold_each_photo_once(zoo):
    free, hayao = (zoo.listed(name) for name in ("free", "hayao"))
    assert (len(free), len(hayao)) == (464, 214)
    assert {len(digest) for digest in free | hayao} == {12}


def test_the_test_photos_follow_from_their_names(zoo, assets):
    """But for one, which a near-duplicate draws to its side."""
    folders = [
        f"{size}/{kind}" for size in ("large", "wild") for kind in ("people", "scenes", "things")
    ]
    photos = find_all([assets / "photos" / each for each in (*folders, "scenes")], [])
    sides = new_sides(photos, 0.04, 0, test_fraction=0.07)
    held_out = [photo for photo, side in zip(photos, sides, strict=True) if side == "test"]
    found = {hashlib.sha256(each.local.read_bytes()).hexdigest()[:12] for each in held_out}
    assert len(found) == 213
    assert found < zoo.listed("hayao")
