"""tools/zoo.py: the card of a shipped student, from a run's files."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.summary.writer.record_writer import RecordWriter

from distill.config import compose
from distill.config.settings.training import Prepare
from distill.data.photo_table import HEAD, PHOTOS

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
