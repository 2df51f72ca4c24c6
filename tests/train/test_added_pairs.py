"""Pairs that come while a run is under way: it ends with those that it began with."""

import numpy as np
import pytest
from PIL import Image

from distill.train import __main__ as train
from support.commands import run

WORDS = ["encoder.weights=none", "decoder=residual", "style.resolution=64", "data.workers=0"]
SHORT = [*WORDS, "data.root=mine", "data.batch_size=2", "data.val_fraction=0.3"]


def draw(names):
    rng = np.random.default_rng(len(names))
    for name in names:
        picture = rng.integers(0, 256, (72, 72, 3), np.uint8)
        for side, pixels in (("A", picture), ("B", 255 - picture)):
            Image.fromarray(pixels).save(f"mine/{side}/{name}.png")


@pytest.mark.slow
def test_a_run_keeps_its_pairs_and_the_next_takes_all(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for side in "AB":
        (tmp_path / "mine" / side).mkdir(parents=True)
    draw([f"p{i}" for i in range(12)])
    assert run(train, *SHORT, "run=one", "trainer.max_steps=1") == 0
    began = (tmp_path / "runs/one/pairs.tsv").read_text()
    draw([f"q{i}" for i in range(10)])
    capsys.readouterr()
    assert run(train, *SHORT, "run=one", "trainer.max_steps=2") == 0
    said = capsys.readouterr().out
    assert "mine: 10 new pairs: " in said
    assert ", which count from the next run" in said
    assert (tmp_path / "runs/one/pairs.tsv").read_text() == began
    assert run(train, *SHORT, "run=two", "trainer.max_steps=1") == 0
    assert "which count" not in capsys.readouterr().out
    later = (tmp_path / "runs/two/pairs.tsv").read_text()
    assert {*began.splitlines()} < {*later.splitlines()}
    assert run(train, *SHORT, "run=one", "trainer.max_steps=1", "resume=false") == 0
    assert (tmp_path / "runs/one/pairs.tsv").read_text() == later
