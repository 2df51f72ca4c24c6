"""distill.train estimate=[N]: what is multiplied by what, by stand-ins for clock and teacher."""

import pytest

from distill.train import __main__ as train
from distill.train import estimate
from support.commands import run


@pytest.mark.parametrize(
    ("value", "shown"), [(0.5, "0.5 s"), (90, "1.5 min"), (7200, "2.0 h"), (40 * 86_400, "40 d")]
)
def test_times(value, shown):
    assert estimate._time(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(2e6, "2.0 MB"), (5e10, "50 GB"), (3e15, "3,000 TB")])
def test_bytes(value, shown):
    assert estimate._bytes(value) == shown


def test_seconds_of_a_call(monkeypatch):
    """Of calls of 3 s each, 4 fit before 10 s are over; the first is not counted."""
    now = [0.0]

    def call():
        now[0] += 3

    monkeypatch.setattr(estimate.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(estimate, "SECONDS", 10)
    assert estimate.seconds(call) == 3
    assert now == [15]


def test_a_table_without_photos_and_nothing_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(estimate, "SECONDS", 0)
    took = iter((2.0, 0.5))
    monkeypatch.setattr(estimate, "seconds", lambda call: (call(), next(took))[1])
    words = ["style=toon", "style.resolution=64", "data.batch_size=4", "trainer.max_steps=100"]
    assert run(train, *words, "encoder.weights=none", "estimate=[10000,36000]") == 0
    said = capsys.readouterr().out
    assert "2 s a label, 0.5 s a step; 100 steps 50 s" in said
    row = next(line for line in said.splitlines() if "36,000" in line)
    assert "20 h" in row  # 36,000 times 2 s
    assert "1.2 h" in row  # 9,000 steps of 0.5 s
    assert "931 MB" in row  # 36,000 pairs of 2·3·64² bytes, and thumbnails of 1,296
    assert list(tmp_path.iterdir()) == []


def test_pairs_of_ones_own_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(train, "style=own", "data.root=pairs", "estimate=[10]") == 1
    assert "estimate: pairs of your own need no labelling; name a style" in capsys.readouterr().err
