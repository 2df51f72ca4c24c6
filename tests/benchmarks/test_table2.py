"""benchmarks/table2.py: what is tuned, trained and scored in turn, and the cells of its table."""

import hashlib
import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
import table2
from fid_commands import OURS, make_weights
from PIL import Image

from distill.core.errors import DistillError
from distill.core.weights import WeightsFile
from distill.metrics import features

PSNR = {"1e-2": 20.0, "3e-3": 22.0, "1e-3": 21.0}
SCORES = {"l1": 25.0, "sobel": 24.0, "style": 23.0, "gka": 24.0}


def results(psnr):
    def row(value):
        return {"value": value, "interval": [value - 1, value + 1]}

    return {
        "fid_name": "Fréchet (MobileNetV2)",
        "similarity": {
            "PSNR (dB), student to teacher": row(psnr),
            "SSIM, student to teacher": row(0.9),
            "vgg, student to teacher": row(0.2),
        },
        "drawing": {
            f"ink {each}, student to teacher": row(0.5) for each in ("recall", "precision")
        },
        "distances": {
            "floor: T(A), T(B)": {**row(5.0), "kid": 0.001},
            "student: T(A), S(B)": {**row(30.0), "kid": 0.01},
            "ceiling: T(A), photos B": {**row(90.0), "kid": 0.1},
        },
    }


@pytest.fixture
def weights(monkeypatch):
    """Those that score are there."""
    monkeypatch.setattr(table2, "VGGDistance", lambda _backbone: None)
    monkeypatch.setattr(table2, "feature_network", lambda _features: None)


@pytest.fixture
def typed(tmp_path, monkeypatch, weights):
    """The commands that a sitting would run; each leaves what the real one leaves."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "set").mkdir()
    made = {"style": "toon", "size": 64}
    monkeypatch.setattr(table2, "manifest_at", lambda _root: made)
    commands = []

    def command(self, *words):
        commands.append(words)
        settings = dict(word.lstrip("+").split("=", 1) for word in words[1:])
        if words[0] == "prepare" or "estimate" in settings:
            return
        folder = Path(settings["runs"]) / settings["run"]
        if words[0] == "train":
            folder.mkdir(parents=True, exist_ok=True)
            rate = f"{float(settings['lr']):.0e}".replace("e-0", "e-")
            (folder / "metrics.csv").write_text(f"step,val/psnr\n1,5\n2,\n3,{PSNR[rate]}\n")
            return
        (folder / "scores").mkdir()
        _, loss, seed = settings["run"].split("-")
        (folder / "scores/results.json").write_text(json.dumps(results(SCORES[loss] + int(seed))))

    monkeypatch.setattr(table2.Sitting, "command", command)
    return commands


def test_rates_are_tuned_once_and_all_losses_learn_from_as_many_pictures(typed, capsys):
    words = ["set", "--pictures", "800", "--tuning", "80", "--decoders", "nnconv"]
    table2.main(words)
    tuning, rest = typed[:3], typed[3:]
    assert {w for words in tuning for w in words if w.startswith("loss")} == {"loss=l1_sobel"}
    assert {w for words in tuning for w in words if w.startswith("trainer.max")} == {
        "trainer.max_steps=10"
    }
    trained = [words for words in rest if words[0] == "train"]
    assert len(trained) == len(rest) / 2 == 9
    assert all({"lr=0.003", "trainer.max_steps=100", "style=toon"} <= {*w} for w in trained)
    assert [w[1] for w in trained[:4]] == [  # the paper's order, seed by seed
        "run=nnconv-l1-0", "run=nnconv-sobel-0", "run=nnconv-style-0", "run=nnconv-l1-1"
    ]  # fmt: skip
    table = Path("runs/table2/table2.md").read_text()
    rows = [line for line in table.splitlines() if line.startswith("| nnconv")]
    assert [row.split(" | ")[1] for row in rows] == ["SmoothL1", "+ Sobel", "+ style"]
    # Three seeds, 25, 26 and 27 dB: t(2) = 4.303, deviation 1.
    half = 4.303 / 3**0.5
    assert f"26.00 ({26 - half:.2f} – {26 + half:.2f})" in rows[0]
    assert "10.0 (10.0 – 10.0)" in rows[0]  # the kernel distance × 1000
    count = len(typed)
    table2.main(words)  # again: everything is there
    assert len(typed) == count
    capsys.readouterr()


def test_one_seed_has_the_interval_over_pictures():
    found = [results(25.0)]
    assert table2.cell(found, "PSNR, dB") == "25.00 (24.00 – 26.00)"
    assert table2.cell(found, "kernel ×1000") == "10.0"


def test_a_sitting_ends_in_time(tmp_path, monkeypatch, capsys, weights):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(table2, "manifest_at", lambda _root: {"style": "toon", "size": 64})
    started = time.monotonic()
    real = table2.subprocess.Popen
    script = "import time; time.sleep(60)"
    monkeypatch.setattr(
        table2.subprocess, "Popen", lambda typed, env: real([typed[0], "-c", script], env=env)
    )
    table2.main(["set", "--minutes", "0.01"])
    assert time.monotonic() - started < 30
    assert "minutes are over: type the same command to go on" in capsys.readouterr().out
    assert not [*Path("runs").rglob("trained")]


def test_what_a_student_has_not_is_no_number():
    without = results(25.0)
    del without["drawing"]["ink precision, student to teacher"]
    assert table2.cell([results(25.0), without], "ink precision") == "–"


@pytest.mark.parametrize("part", ["VGGDistance", "feature_network"])
def test_weights_that_score_are_looked_for_before_the_first_training(typed, monkeypatch, part):
    def missing(_name):
        raise DistillError("weights file x.pth: cannot be downloaded")

    monkeypatch.setattr(table2, part, missing)
    with pytest.raises(SystemExit, match=r"error: weights file x\.pth: cannot be downloaded"):
        table2.main(["set"])
    assert typed == []


def test_his_table_labels_each_style_and_has_floor_and_ceiling(typed, capsys):
    Path("photos").mkdir()
    words = ["--photos", "photos", "--styles", "paprika", "webtoon", "--decoders", "nnconv"]
    table2.main([*words, "--rates", "1e-2", "--losses", "l1", "style", "--seeds", "0"])
    labelled = [words for words in typed if words[0] == "prepare"]
    assert [words[1] for words in labelled] == ["style=paprika", "style=webtoon"]
    assert len(typed) == 2 + 2 * 2 * 2
    rows = [row.split(" | ") for row in Path("runs/table2/table2.md").read_text().splitlines()]
    header = next(row for row in rows if "floor" in row)
    scored = [row for row in rows if row[0] in ("| paprika", "| webtoon")]
    assert [row[2] for row in scored] == ["SmoothL1", "+ style"] * 2
    assert scored[0][header.index("floor")] == "5.0 (4.0 – 6.0)"
    assert scored[0][header.index("ceiling")] == "90.0 (89.0 – 91.0)"
    capsys.readouterr()


def test_an_estimate_trains_nothing(typed, monkeypatch, capsys):
    monkeypatch.setattr(table2, "find_photos", lambda _folder: range(20))
    table2.main(["--photos", "photos", "--styles", "paprika", "--estimate"])
    assert len(typed) == 2 * 3
    assert all("estimate=[20]" in words and "photos=photos" in words for words in typed)
    assert "3 such trainings: nnconv, + style" in capsys.readouterr().out
    assert not Path("runs").exists()


def test_the_weight_of_gka_is_chosen_on_validation(typed, monkeypatch, capsys):
    best = {0.1: 20.0, 1.0: 25.0, 10.0: 22.0}

    def tried(self, decoder, loss, choices):
        assert loss == "gka" or len(choices) == 1
        return max(choices, key=lambda each: best[each.gka])

    monkeypatch.setattr(table2.Sitting, "_best", tried)
    words = ["set", "--gka", "0.1", "1", "10", "--losses", "sobel", "gka", "--seeds", "0"]
    table2.main([*words, "--rates", "1e-2", "--decoders", "nnconv", "--batch", "16"])
    with_it, without = typed[2], typed[0]
    assert {"loss.weights.gka=1", "data.batch_size=16", "trainer.max_steps=1600"} <= {*with_it}
    assert not [word for word in without if "gka=" in word]
    capsys.readouterr()


def test_a_set_or_photos_not_both(capsys):
    for words in ([], ["set", "--photos", "photos"]):
        with pytest.raises(SystemExit):
            table2.main(words)
    assert "name a SET, or photos to label: --photos DIR" in capsys.readouterr().err


def names(count, low, high):
    """Names of photos whose hash, as the split has it, is in that part of [0, 1)."""
    digests = {n: hashlib.sha256(f"0:p{n}x".encode()).digest()[:8] for n in range(1000)}
    where = {n: int.from_bytes(digest, "big") / 2**64 for n, digest in digests.items()}
    return [f"p{n}x" for n, place in where.items() if low <= place < high][:count]


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_his_table_end_to_end_with_stand_in_weights(assets, tmp_path, monkeypatch, capsys):
    """Random weights of Inception's layout, styles without weights for his."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    Path("photos").mkdir()
    for name in [*names(6, 0, 0.1), *names(4, 0.1, 0.2), *names(30, 0.2, 1)]:
        noise = Image.fromarray(rng.integers(0, 255, (6, 6, 3), dtype=np.uint8))
        noise.resize((128, 128), Image.Resampling.BICUBIC).save(f"photos/{name}.png")
    make_weights(tmp_path / "weights" / features.INCEPTION.name, Path("photos"))
    folders = [tmp_path / "weights", *(assets / name for name in ("perceptual", "encoders"))]
    monkeypatch.setenv("DISTILL_WEIGHTS", os.pathsep.join(map(str, folders)))
    monkeypatch.setattr(features, "INCEPTION", WeightsFile(features.INCEPTION.name))
    real, started = table2.subprocess.Popen, []

    def start(typed, env):  # the file's name promises a hash that random weights do not have
        started.append(typed[2])
        scoring = typed[2] == "distill.eval_fid"
        return real([typed[0], "-c", OURS, *typed[3:]] if scoring else typed, env=env)

    monkeypatch.setattr(table2.subprocess, "Popen", start)
    words = ["--photos", "photos", "--styles", "toon", "neon", "--features", "inception"]
    words += ["--decoders", "nnconv", "--losses", "l1", "sobel", "--seeds", "0", "--rates", "1e-2"]
    words += ["--pictures", "64", "--also", "encoder.weights=none", "data.crop_size=64"]
    table2.main(words)
    assert len(started) == 2 * (1 + 2 * 2)
    figures = json.loads(Path("runs/table2/table2.json").read_text())["figures"]
    assert [*figures] == [
        f"{style}-nnconv-{loss}-0" for style in ("toon", "neon") for loss in ("l1", "sobel")
    ]
    for each in figures.values():
        assert each["fid_name"] == "FID"
        floor, student, ceiling, _ = (row["value"] for row in each["distances"].values())
        assert min(floor, student, ceiling) > 0
    assert "toon | nnconv | SmoothL1 | 1" in Path("runs/table2/table2.md").read_text()
    table2.main(words)
    assert len(started) == 2 * (1 + 2 * 2) + 2  # each set is only looked at
    capsys.readouterr()
