"""The learning rate that is found, and the terms that are balanced, before the first step."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

from distill.losses.criterion import Criterion
from distill.train import tuning
from distill.train.tuning import Curve, _undo_average
from support.commands import go

RATES = np.geomspace(1e-6, 1, 100)


def sigmoid_fall(centre, noise=0.0):
    """A loss that falls from 1 to 0.2, most steeply at `centre`, on the axis of the logarithm."""
    clean = 0.2 + 0.8 / (1 + np.exp(6 * (np.log10(RATES) - np.log10(centre))))
    return clean + noise * np.random.default_rng(0).normal(size=len(RATES))


@pytest.mark.parametrize("noise", [0.0, 0.03])
@pytest.mark.parametrize("centre", [1e-4, 3e-3, 5e-2])
def test_the_rate_is_where_the_loss_falls_most_steeply(centre, noise):
    rate = Curve(RATES, sigmoid_fall(centre, noise)).rate
    # The rates tried are 15 % apart; noise may move the steepest point by some of them.
    assert abs(np.log10(rate / centre)) < (0.25 if noise else 0.07)


def test_a_curve_that_diverges_at_its_end_gives_the_same_rate():
    losses = sigmoid_fall(1e-3)
    losses[80:] = np.linspace(1, 50, 20)
    losses[95:] = np.nan
    assert Curve(RATES, losses).rate == pytest.approx(1e-3, rel=0.2)


@pytest.mark.parametrize(
    "losses",
    [
        np.ones(100),
        np.linspace(1, 5, 100),
        1 + 0.02 * np.random.default_rng(1).normal(size=100),
        np.full(100, np.nan),
        sigmoid_fall(1e-3)[:5],
    ],
    ids=["flat", "rising", "noise", "nan", "short"],
)
def test_a_curve_that_never_falls_suggests_nothing(losses):
    curve = Curve(RATES[: len(losses)], losses)
    assert curve.rate is None
    assert "the default, 0.001" in str(curve)


def test_smoothing_shifts_nothing_and_keeps_a_straight_line():
    step = np.where(np.arange(100) < 50, 1.0, 0.0)
    smooth = Curve(RATES, step).smooth
    assert smooth[49] + smooth[50] == pytest.approx(1)  # symmetric around the step
    line = np.linspace(0, 99, 100)
    assert np.allclose(Curve(RATES, line).smooth[20:-20], line[20:-20])


def test_lightnings_average_is_undone():
    """Against the recurrence as Lightning's callback writes it (global_step counts from 1)."""
    losses, average, averaged = np.random.default_rng(2).random(50), 0.0, []
    for step, loss in enumerate(losses, start=1):
        average = 0.98 * average + 0.02 * loss
        averaged.append(average / (1 - 0.98 ** (step + 1)))
    assert np.allclose(_undo_average(averaged), losses)


@pytest.mark.campaign
def test_lr_auto_finds_writes_and_uses_a_rate(here, capsys):
    assert go("run=found", "lr=auto", "trainer.max_steps=2", "schedule=constant") == 0
    found = yaml.safe_load(Path("runs/found/measured.yaml").read_text())
    assert found["lr_suggested"] is True
    assert 1e-5 < found["lr"] < 0.3
    assert f"lr=auto: {found['lr']:g}, where the loss falls most steeply" in capsys.readouterr().out
    with Image.open("runs/found/lr_finder.png") as curve:
        assert curve.size == (840, 480)
    saved = torch.load("runs/found/checkpoints/last.ckpt", weights_only=True)
    assert saved["optimizer_states"][0]["param_groups"][0]["lr"] == pytest.approx(found["lr"])
    # Gone on, the rate is the one found: nothing is measured again.
    stamp = Path("runs/found/measured.yaml").stat().st_mtime_ns
    assert go("run=found", "lr=auto", "trainer.max_steps=3", "schedule=constant") == 0
    assert "lr=auto:" not in capsys.readouterr().out
    assert Path("runs/found/measured.yaml").stat().st_mtime_ns == stamp
    saved = torch.load("runs/found/checkpoints/last.ckpt", weights_only=True)
    assert saved["optimizer_states"][0]["param_groups"][0]["lr"] == pytest.approx(found["lr"])


@pytest.mark.slow
def test_what_was_measured_is_kept_by_a_run_without_a_checkpoint(here, capsys, monkeypatch):
    """As after a kill between the finder and the first checkpoint."""
    monkeypatch.setattr(tuning, "RATES", 12)
    words = ["run=found", "loss=l1", "lr=auto", "loss.balance=true", "trainer.max_steps=1"]
    assert go(*words) == 0
    kept = Path("runs/found/measured.yaml").read_bytes()
    shutil.rmtree("runs/found/checkpoints")
    measured = []
    for name in ("find_rate", "balance"):
        monkeypatch.setattr(tuning, name, lambda *_, name=name: measured.append(name) or {})
    assert go(*words) == 0
    assert (measured, Path("runs/found/measured.yaml").read_bytes()) == ([], kept)
    saved = torch.load("runs/found/checkpoints/last.ckpt", weights_only=True)
    assert saved["loss_factors"] == yaml.safe_load(kept)["loss_factors"]
    shutil.rmtree("runs/found/checkpoints")
    monkeypatch.setattr(tuning, "find_rate", lambda *_: Curve(RATES[:2], [1.0, 1.0]))
    assert go(*words, "seed=1") == 0  # other settings: measured again
    assert measured == ["balance"]


@pytest.mark.slow
def test_the_finder_leaves_no_trace_in_what_is_learned(here, monkeypatch):
    monkeypatch.setattr(tuning, "RATES", 12)
    assert go("run=found", "lr=auto", "trainer.max_steps=2") == 0
    rate = yaml.safe_load(Path("runs/found/measured.yaml").read_text())["lr"]
    assert go("run=given", f"lr={rate}", "trainer.max_steps=2") == 0
    a, b = (
        torch.load(f"runs/{name}/checkpoints/last.ckpt", weights_only=True)["state_dict"]
        for name in ("found", "given")
    )
    assert all(torch.equal(a[key], b[key]) for key in a)


@pytest.mark.campaign
def test_no_suggestion_is_said_and_the_default_taken(here, capsys, monkeypatch):
    monkeypatch.setattr(tuning, "HIGHEST", 1e-9)  # rates at which nothing is learned
    monkeypatch.setattr(tuning, "LOWEST", 1e-12)
    assert go("run=none", "lr=auto", "trainer.max_steps=1", "schedule=constant") == 0
    assert "no suggestion; the default, 0.001" in capsys.readouterr().out
    found = yaml.safe_load(Path("runs/none/measured.yaml").read_text())
    assert found == {"lr": 0.001, "lr_suggested": False}


@pytest.mark.campaign
def test_balance_brings_every_term_to_the_first_ones_order_of_magnitude(here, capsys):
    terms = ["loss.weights.l1=1", "loss.weights.sobel=5000", "loss.weights.gka=0.00003"]
    options = [*terms, "loss.balance=true", "data.batch_size=4", "trainer.max_steps=2"]
    assert go("run=even", *options) == 0
    factors = yaml.safe_load(Path("runs/even/measured.yaml").read_text())["loss_factors"]
    assert factors["l1"] == 1
    assert all(np.log10(f) == pytest.approx(round(np.log10(f))) for f in factors.values())
    rows = Path("runs/even/metrics.csv").read_text().splitlines()
    first = dict(zip(rows[0].split(","), rows[1].split(","), strict=True))
    sizes = {n: float(first[f"train/{n}_weighted"]) for n in ("l1", "sobel", "gka")}
    assert all(0.1 < size / sizes["l1"] < 10 for size in sizes.values())
    # The weighted column is weight times factor times the raw value.
    assert sizes["sobel"] == pytest.approx(
        5000 * factors["sobel"] * float(first["train/sobel"]), rel=1e-4
    )
    assert "loss.balance: factors l1 ×1, sobel ×" in capsys.readouterr().out
    # Frozen: the checkpoint brings the factors back.
    assert go("run=even", *options, "trainer.max_steps=4") == 0
    assert "loss.balance:" not in capsys.readouterr().out
    saved = torch.load("runs/even/checkpoints/last.ckpt", weights_only=True)
    assert saved["loss_factors"] == factors


def test_factors_multiply_weights_once():
    criterion = Criterion({"a": torch.nn.L1Loss(), "b": torch.nn.MSELoss()}, {"a": 2, "b": 3})
    criterion.rescale({"b": 0.1})
    criterion.rescale({"b": 0.1})
    assert criterion.weights == pytest.approx({"a": 2, "b": 0.3})
    total, raw = criterion(torch.zeros(1), torch.full((1,), 2.0))
    assert {k: float(v) for k, v in raw.items()} == {"a": 2, "b": 4}
    assert float(total) == pytest.approx(2 * 2 + 0.3 * 4)
