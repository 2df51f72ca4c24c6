"""Pairs of one's own: no teacher anywhere, and every command follows."""

import json

import numpy as np
import pytest
from PIL import Image

from distill.config import compose
from distill.config.settings.training import Train
from distill.data.manifest import Manifest, write_manifest
from distill.eval_fid import __main__ as eval_fid
from distill.export import __main__ as export
from distill.prepare import __main__ as prepare
from distill.runs.run_folder import Run
from distill.stylize import __main__ as stylize
from distill.train import __main__ as train
from distill.train.student_training import check
from support.commands import run
from support.pairs_on_disk import write_set

WORDS = ["encoder.weights=none", "decoder=residual", "style.resolution=64", "data.workers=0"]
SHORT = [*WORDS, "data.batch_size=2", "trainer.max_steps=1", "data.val_fraction=0.3"]


def write_pairs(folder, count=12):
    rng = np.random.default_rng(0)
    for side in ("A", "B"):
        (folder / side).mkdir(parents=True)
    for i in range(count):
        picture = rng.integers(0, 256, (72, 72, 3), np.uint8)
        Image.fromarray(picture).save(folder / f"A/{i}.png")
        Image.fromarray(255 - picture).save(folder / f"B/{i}.png")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with pairs in `drawings` and a run of them. Its photos are of something else."""
    folder = tmp_path_factory.mktemp("own")
    write_pairs(folder / "drawings")
    (folder / "data/photos").mkdir(parents=True)
    Image.new("RGB", (64, 64)).save(folder / "data/photos/unrelated.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run(train, "data.root=drawings", *SHORT) == 0
    return folder


@pytest.fixture
def there(trained, monkeypatch):
    monkeypatch.chdir(trained)
    return trained


@pytest.mark.parametrize(
    ("made", "name", "teacher"), [("toon", "toon", True), ("my-brush", "my-brush", False)]
)
@pytest.mark.slow
def test_a_teacher_s_set_is_of_its_own_style_and_size(tmp_path, monkeypatch, made, name, teacher):
    monkeypatch.chdir(tmp_path)
    write_set(tmp_path / "set", {"train": {"a": 6}, "val": {"a": 2}})
    manifest = Manifest("here", made, "one", size=64)
    write_manifest(tmp_path / "set", manifest, {"train": 6, "val": 2, "test": 0})
    words = [word for word in SHORT if not word.startswith("style.resolution")]
    assert run(train, "data.root=set", *words) == 0
    config = Run(tmp_path / f"runs/{name}-residual").settings()
    assert (config.style.name, config.style.resolution) == (name, 64)
    assert (config.teacher is not None) is teacher


def test_another_style_than_the_set_s_is_said(tmp_path, capsys):
    root = write_set(tmp_path / "set", {"train": {"a": 6}, "val": {"a": 2}})
    counts = {"train": 6, "val": 2, "test": 0}
    for made, words in (
        ("toon", ["style=hayao"]),
        ("hayao", ["style=hayao"]),
        ("my", ["style=own"]),
    ):
        write_manifest(root, Manifest("here", made, "one"), counts)
        check(compose.load("train", [f"data.root={root}", *words], Train))
        said = f"data.root={root}: targets of style=toon are learnt, not of hayao\n"
        assert capsys.readouterr().out == (said if made == "toon" else "")


@pytest.mark.campaign
def test_export_compares_on_the_held_out_pairs_and_shows_no_teacher(there, capsys, monkeypatch):
    seen = []
    from distill.export import float32_export

    real = float32_export.parity

    def watched(path, network, photos, *more):
        seen.append(photos)
        return real(path, network, photos, *more)

    monkeypatch.setattr(float32_export, "parity", watched)
    assert run(export, "run=drawings-residual", "exporter.size=64") == 0
    assert seen[0][0].std() > 0.2  # noise, as the pairs are; the photo beside them is black
    report = json.loads((there / "runs/drawings-residual/export/report.json").read_text())
    assert report["teacher"] == {}
    assert report["style"]["licence"] == "yours to say"
    out = capsys.readouterr()
    assert "toon" not in out.out + out.err


def test_a_run_whose_pairs_are_gone_asks_for_photos(there, capsys):
    (there / "drawings").rename(there / "away")
    try:
        assert run(export, "run=drawings-residual", "exporter.size=64") == 1
    finally:
        (there / "away").rename(there / "drawings")
    assert (
        "drawings: the run's pairs are not here; name photos with photos=DIR"
        in capsys.readouterr().err
    )


@pytest.mark.slow
def test_eval_fid_compares_with_targets_of_these_pairs_or_of_others(there, capsys):
    quick = ["run=drawings-residual", "features=none", "bootstrap=0", "flicker=0"]
    assert run(eval_fid, *quick) == 0
    folder = there / "runs/drawings-residual/eval"
    rows = json.loads((folder / "results.json").read_text())["similarity"]
    assert "PSNR (dB), student to target" in rows
    assert not [row for row in rows if "teacher" in row]
    write_pairs(there / "elsewhere/val", 3)
    rng = np.random.default_rng(5)
    for i in range(3):  # other pictures: none of them is left out
        Image.fromarray(rng.integers(0, 256, (64, 64, 3), np.uint8)).save(
            there / f"elsewhere/val/A/{i}.png"
        )
    assert run(eval_fid, *quick, "photos=elsewhere") == 0
    assert json.loads((folder / "results.json").read_text())["pictures"] == 3


@pytest.mark.slow
def test_stylize_says_that_there_is_no_teacher_to_compare_with(there, capsys):
    assert run(stylize, "drawings/A/1.png", "run=drawings-residual", "compare=true") == 0
    assert "learnt from the pairs in drawings, it has no teacher" in capsys.readouterr().err


def test_prepare_leaves_them_alone(there, capsys):
    before = sorted(there.joinpath("drawings").rglob("*"))
    assert run(prepare, "data.root=drawings") == 1
    assert "holds pairs of your own, there is nothing to prepare" in capsys.readouterr().err
    assert sorted(there.joinpath("drawings").rglob("*")) == before


@pytest.mark.parametrize("typed", ["photos=data/photos", "crop=0.5", "data.views=3"])
def test_what_is_of_labelled_photos_is_refused_beside_own_pairs(there, capsys, typed):
    assert run(train, "data.root=drawings", typed, *SHORT) == 1
    said = f"{typed}: data.root=drawings holds pairs of your own, which nobody labels"
    assert said in capsys.readouterr().err


def test_pairs_of_ones_own_that_are_to_be_labelled_on_the_fly(there, capsys):
    assert run(train, "data.root=drawings", "data=photos", "photos=none", *SHORT) == 1
    said = "data.root=drawings: nothing for data=photos, and no photos=none to make it from"
    assert said in capsys.readouterr().err


def test_terms_that_need_a_teacher_are_refused(there, capsys):
    words = ["data.root=drawings", "run=gka", "loss.weights.gka=1", *SHORT]
    assert run(train, *words) == 1
    assert "pairs of your own have no teacher; set loss.weights.gka=0" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["style=own"], ["style=own", "data=photos", "data.root=drawings"]]
)
def test_the_style_of_own_pairs_wants_their_folder(there, capsys, words):
    assert run(train, *words, "run=none", *SHORT) == 1
    assert (
        "is of pairs of your own; name their folder with data.root=DIR" in capsys.readouterr().err
    )
