"""trainer=few from a student of the package, as it is typed."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from distill.config import compose
from distill.config.settings.training import Train
from distill.models.checkpoint import load_network
from distill.train import __main__ as train
from distill.train.student_training import new_student
from support.commands import run


@pytest.mark.slow
@pytest.mark.parametrize("averages", ["kept", "measured"])
def test_a_handful_of_pairs_leaves_the_averages_and_moves_the_rest(averages, tmp_path, monkeypatch):
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
    words += [f"batchnorm={averages}"]
    assert run(train, *words) == 0
    first = new_student(compose.load("train", words, Train)).state_dict()
    ended, _ = load_network(tmp_path / "runs/drawings-detail/checkpoints/last.ckpt", "AtoB")
    norms = {n for n, m in ended.named_modules() if isinstance(m, nn.BatchNorm2d)}
    assert len(norms) > 30
    after = ended.state_dict()
    for name in norms:
        for part in (f"{name}.running_mean", f"{name}.running_var"):
            assert torch.equal(after[part], first[part]) == (averages == "kept")
    moved = [n for n in norms if not torch.equal(after[f"{n}.weight"], first[f"{n}.weight"])]
    assert len(moved) == len(norms)
