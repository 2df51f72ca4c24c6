"""trainer=few from a student of the package, as it is typed."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from distill.config import compose
from distill.config.settings.training import Train
from distill.core.errors import DistillError
from distill.models.checkpoint import load_network
from distill.train import __main__ as train
from distill.train.student_training import new_student, parts
from support.commands import run


@pytest.fixture
def words(tmp_path, monkeypatch):
    """Of a training of three steps on six pairs."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for side in ("A", "B"):
        (tmp_path / "drawings" / side).mkdir(parents=True)
    for i in range(6):
        picture = rng.integers(0, 256, (96, 96, 3), np.uint8)
        Image.fromarray(picture).save(tmp_path / f"drawings/A/{i}.png")
        Image.fromarray(255 - picture).save(tmp_path / f"drawings/B/{i}.png")
    words = ["data.root=drawings", "trainer=few", "init=zoo:whitebox", "style.resolution=96"]
    words += ["data.crop_size=64", "data.workers=0", "data.batch_size=2", "trainer.max_steps=3"]
    return words


def before_and_after(words):
    """The student as it begins and as it ends."""
    assert run(train, *words) == 0
    first = new_student(compose.load("train", words, Train))
    return first, load_network(Path("runs/drawings-detail/checkpoints/last.ckpt"), "AtoB")[0]


@pytest.mark.slow
@pytest.mark.parametrize("averages", ["kept", "measured"])
def test_a_handful_of_pairs_leaves_the_averages_and_moves_the_rest(averages, words):
    begun, ended = before_and_after([*words, f"batchnorm={averages}"])
    norms = {n for n, m in ended.named_modules() if isinstance(m, nn.BatchNorm2d)}
    assert len(norms) > 30
    first, after = begun.state_dict(), ended.state_dict()
    for name in norms:
        for part in (f"{name}.running_mean", f"{name}.running_var"):
            assert torch.equal(after[part], first[part]) == (averages == "kept")
    moved = [n for n in norms if not torch.equal(after[f"{n}.weight"], first[f"{n}.weight"])]
    assert len(moved) == len(norms)


@pytest.mark.slow
def test_parts_that_are_trainable_move_and_no_others(words):
    """A module and a parameter, where decoder.at2 is not decoder.at20."""
    begun, ended = before_and_after([*words, "trainable=[decoder.at2.1,decoder.out.bias]"])
    first, after = begun.state_dict(), dict(ended.named_parameters())
    moved = {name for name in after if not torch.equal(after[name], first[name])}
    expected = {name for name in after if name.startswith("decoder.at2.1.")}
    assert moved == {*expected, "decoder.out.bias"}


def test_a_part_that_the_student_does_not_have(words):
    with pytest.raises(
        DistillError, match=r"^trainable: decoder\.at3: no such part of the student; did you mean"
    ):
        parts(compose.load("train", [*words, "trainable=[decoder.at3]"], Train))
