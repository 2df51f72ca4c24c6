"""benchmarks/table2.py: what is tuned, trained and scored in turn, and the cells of its table."""

import json
import time
from pathlib import Path

import pytest
import table2

from distill.core.errors import DistillError

PSNR = {"1e-2": 20.0, "3e-3": 22.0, "1e-3": 21.0}
SCORES = {"l1": 25.0, "sobel": 24.0, "style": 23.0}


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
        "distances": {"student: T(A), S(B)": {**row(30.0), "kid": 0.01}},
    }


@pytest.fixture(autouse=True)
def weights(monkeypatch):
    """Those that score are there."""
    monkeypatch.setattr(table2, "VGGDistance", lambda _backbone: None)
    monkeypatch.setattr(table2, "feature_network", lambda _features: None)


@pytest.fixture
def typed(tmp_path, monkeypatch):
    """The commands that a sitting would run; each leaves what the real one leaves."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "set").mkdir()
    made = {"style": "toon", "size": 64}
    monkeypatch.setattr(table2, "manifest_at", lambda _root: made)
    commands = []

    def command(self, *words):
        commands.append(words)
        settings = dict(word.lstrip("+").split("=", 1) for word in words[1:])
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


def test_a_sitting_ends_in_time(tmp_path, monkeypatch, capsys):
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
