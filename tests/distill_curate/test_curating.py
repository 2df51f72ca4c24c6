"""distill.curate as it is typed, on sets with known faults."""

import csv
import shlex
import zlib
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from PIL import Image

from distill.config import compose
from distill.core import onnx_files
from distill.core.errors import DistillError
from distill.data.pairs import find_pairs
from distill.data.photos import centre_square
from distill.models import zoo
from distill.stylize.onnx_student import OnnxStudent
from distill_curate import __main__ as curate
from distill_curate import curating, pair_scores
from distill_curate.settings import Curate
from support.commands import run
from support.textures import texture

GOOD = [f"good{i}.png" for i in range(8)]
WRONG = {
    "shifted.png": "lies 4.0 px off",
    "another.png": "another picture, or far from the photo",
    "undrawn.png": "the target is the photo itself",
    "broken.png": "cannot be read",
}


def put(root, name, photo, drawing):
    for side, picture in (("A", photo), ("B", drawing)):
        (root / side).mkdir(parents=True, exist_ok=True)
        if isinstance(picture, bytes):
            (root / side / name).write_bytes(picture)
        else:
            Image.fromarray(picture).save(root / side / name)


def negative(seed, down=0.0, right=0.0):
    return 255 - texture(seed, down, right)


@pytest.fixture
def flawed(tmp_path, monkeypatch):
    """Eight negatives of textures, and one pair of each fault."""
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "set"
    for seed, name in enumerate(GOOD):
        put(root, name, texture(seed), negative(seed, 0.3, -0.2))
    put(root, "shifted.png", texture(20), negative(20, 3.5, -2))
    put(root, "another.png", texture(21), negative(22))
    put(root, "undrawn.png", texture(23), texture(23))
    put(root, "broken.png", b"no picture", texture(24))
    put(root, "copy.png", texture(0)[:, ::-1], negative(0)[:, ::-1] // 2)
    return root


def table(folder):
    with (folder / "scores.csv").open(encoding="utf-8") as file:
        return {row["pair"]: row for row in csv.DictReader(file)}


@pytest.mark.campaign
def test_every_fault_is_found_and_nothing_else(flawed, capsys):
    assert run(curate, "data.root=set") == 0
    rows = table(flawed.parent / "data" / "curation" / "set")
    reasons = {name: row["reasons"] for name, row in rows.items() if row["reasons"]}
    twin = next(name for name in ("good0.png", "copy.png") if name in reasons)
    assert reasons.pop(twin) == "a near-duplicate of another photo"
    assert rows[twin]["copy_of"] in {"good0.png", "copy.png"} - {twin}
    assert reasons == WRONG
    assert float(rows["good3.png"]["down"]) == pytest.approx(0.3, abs=0.1)
    assert rows["broken.png"]["shift"] == ""
    said = capsys.readouterr().out
    assert "13 pairs, 5 to leave out" in said
    assert "next: python -m distill.curate data.root=set apply=true" in said
    assert not (flawed / "dropped.txt").exists()


@pytest.mark.slow
def test_the_page_shows_pairs_and_says_why(flawed):
    assert run(curate, "data.root=set", "output=out") == 0
    page = (flawed.parent / "out" / "index.html").read_text(encoding="utf-8")
    assert page.count("cannot be read") == 1
    for reason in {*WRONG.values()} - {"cannot be read"}:
        assert page.count(reason) > 1  # among what is left out, and where it stands by a score
    pictures = {path.name for path in (flawed.parent / "out" / "pictures").iterdir()}
    assert pictures == {part.partition('"')[0] for part in page.split('src="pictures/')[1:]}
    assert len(pictures) == 13
    with Image.open(flawed.parent / "out" / "pictures" / min(pictures)) as shown:
        assert shown.size == (400, 200)
    assert run(curate, "data.root=set", "output=out", "show=1") == 0  # none of the others stays
    assert len([*(flawed.parent / "out" / "pictures").iterdir()]) <= 4


@pytest.mark.campaign
def test_a_name_is_no_markup(flawed):
    put(flawed, "<script>alert(1)<.png", texture(40), texture(41))
    assert run(curate, "data.root=set", "output=out") == 0
    page = (flawed.parent / "out" / "index.html").read_text(encoding="utf-8")
    assert page.count("<script>") == 1
    assert "&lt;script&gt;alert(1)&lt;.png" in page


@pytest.mark.campaign
def test_training_leaves_out_what_the_set_s_list_names(flawed, capsys):
    before = find_pairs(flawed, None, 0.2, 0, 0.2)
    (flawed / "dropped.txt").write_text("good5.png\nnot of these pairs.jpg\n")
    assert run(curate, "data.root=set", "apply=true") == 0
    lines = (flawed / "dropped.txt").read_text().splitlines()
    assert lines[:2] == ["good5.png", "not of these pairs.jpg"]  # lists add up
    assert {*WRONG} < {*lines}
    assert "next: python -m distill.train data.root=set" in capsys.readouterr().out
    after = find_pairs(flawed, None, 0.2, 0, 0.2)
    for side, pairs in before.items():  # the others keep their sides
        assert [p.name for p in after[side]] == [p.name for p in pairs if p.name not in lines]
    (flawed.parent / "back.txt").write_text("shifted.png\ngood5.png\n")
    words = ("apply=true", "align=true", "restore=back.txt")
    assert run(curate, "data.root=set", *words) == 0
    assert not {"shifted.png", "good5.png"} & {*(flawed / "dropped.txt").read_text().splitlines()}
    assert "data.align=true" in capsys.readouterr().out


@pytest.mark.slow
def test_the_next_line_keeps_what_was_typed_and_much_left_out_is_said(flawed, capsys):
    words = ["data.root=set", "output=my page", "limits.shift=9.0", "limits.copies=false"]
    assert run(curate, *words, "show=5") == 0
    said = capsys.readouterr().out
    line = next(line for line in said.splitlines() if line.startswith("next: "))
    expected = {"next:", "python", "-m", "distill.curate", *words, "show=5", "apply=true"}
    assert {*shlex.split(line)} == expected
    assert "warning" not in said  # 3 of 13
    assert run(curate, *words, "limits.difference=255") == 0
    assert "warning: that is 100% of the set" in capsys.readouterr().out


@pytest.mark.slow
def test_taking_down_pairs_of_ones_own(flawed, capsys):
    (flawed / "A/again.png").write_bytes((flawed / "A/good3.png").read_bytes())
    (flawed / "B/again.png").write_bytes((flawed / "B/good4.png").read_bytes())
    trained = flawed.parent / "runs/mine"
    trained.mkdir(parents=True)
    (trained / "config.yaml").write_text("data: {root: set}\n")
    (flawed.parent / "drop.txt").write_text("good3.png\n")
    assert run(curate, "data.root=set", "drop=drop.txt") == 0
    assert f"run    {Path('runs/mine')}: its student learnt from it" in capsys.readouterr().out
    sides = find_pairs(flawed, None, 0.2, 0, 0.2)
    names = {pair.name for pairs in sides.values() for pair in pairs}
    assert not {"good3.png", "again.png"} & names
    assert "good4.png" in names
    assert run(curate, "data.root=set", "restore=drop.txt") == 0
    sides = find_pairs(flawed, None, 0.2, 0, 0.2)
    assert {"good3.png", "again.png"} <= {pair.name for pairs in sides.values() for pair in pairs}


@pytest.mark.slow
def test_one_name_on_two_sides(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "set"
    for side, seed in (("train", 1), ("val", 2)):
        put(root / side, "a.png", texture(seed), negative(seed))
        put(root / side, f"{side}.png", texture(seed + 4), texture(seed + 4))
    put(root / "val", "a.png", texture(2), negative(9))
    assert run(curate, "data.root=set", "apply=true") == 0
    lines = (root / "dropped.txt").read_text().splitlines()
    assert sorted(lines) == ["train.png", "val.png", "val/A/a.png"]
    (root / "dropped.txt").write_text("a.png\ntrain.png\nval.png\n")
    with pytest.raises(DistillError, match="names every pair there is"):
        find_pairs(root, None, 0.2, 0)


@pytest.mark.slow
def test_a_killed_run_goes_on(flawed, monkeypatch):
    """What was kept before the kill is not measured again; a changed file is."""
    monkeypatch.setattr("distill.data.thumbnails.SAVE_SECONDS", 0)
    measured: list[int] = []
    real = pair_scores.register

    def register(photo, drawing):
        if stop is not None and len(measured) == stop:
            raise KeyboardInterrupt
        measured.append(zlib.crc32(photo.tobytes()))
        return real(photo, drawing)

    monkeypatch.setattr(pair_scores, "register", register)
    settings = compose.load("curate", ["data.root=set"], Curate)
    stop = 6  # in the seventh readable one
    with pytest.raises(KeyboardInterrupt):
        curating.curate(settings)
    kept, stop = {*measured}, None
    measured.clear()
    curating.curate(settings)
    assert measured
    assert not kept & {*measured}
    measured.clear()
    put(flawed, "good1.png", texture(50), negative(50))
    curating.curate(settings)
    assert len(measured) == 1


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ([], "data.root=null: name the set of pairs"),
        (["data.root=nowhere"], "data.root=nowhere: no such folder"),
        (["data.root=set", "output=set"], "output=set: that is the set itself"),
        (["data.root=set", "limits.shift=0"], "limits.shift=0"),
    ],
)
@pytest.mark.slow
def test_refused_in_one_line(flawed, typed, said, capsys):
    assert run(curate, *typed) == 1
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1
    assert said in error[0]


@pytest.mark.slow
def test_a_drawing_of_another_style_is_found(assets, tmp_path, monkeypatch):
    """Real photos drawn by two shipped students, judged by a real VGG."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISTILL_WEIGHTS", str(assets / "perceptual"))
    files = sorted((assets / "photos" / "things").iterdir())[:12]
    draw = {n: OnnxStudent(onnx_files.load_model(zoo.find(n)), n, 1) for n in ("hayao", "toon")}
    for number, file in enumerate(files):
        with Image.open(file) as photo:
            square = np.asarray(centre_square(photo.convert("RGB"), 256))
        style = "toon" if number == 7 else "hayao"
        drawing = draw[style](square.transpose(2, 0, 1)[None].astype(np.float32) / 255)
        drawn = (drawing[0].transpose(1, 2, 0) * 255).round().clip(0, 255).astype(np.uint8)
        put(tmp_path / "set", f"{number}.png", square, drawn)
    assert run(curate, "data.root=set", "show=12") == 0
    rows = table(tmp_path / "data" / "curation" / "set")
    assert max(rows, key=lambda name: float(rows[name]["style"])) == "7.png"
    assert "another style" in rows["7.png"]["reasons"]


def test_pictures_can_be_written_to_as_torch_wants(tmp_path, recwarn):
    """Else its warning stood among the command's lines."""
    pictures = [Image.fromarray(texture(seed)) for seed in (0, 1)]
    pair = SimpleNamespace(photo=None, target=None, read=lambda: pictures)
    style = Mock(return_value=np.zeros((1, pair_scores.SCORES["change"].shape[0])), identity="")
    torch.set_warn_always(True)  # it warns once a process
    try:
        pair_scores.measure([pair], tmp_path / "scores.npz", style, None)
    finally:
        torch.set_warn_always(False)
    assert style.called
    assert not [each for each in recwarn if "not writable" in str(each.message)]
