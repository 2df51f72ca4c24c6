"""Two processes on one machine learn what one process learns that accumulates their batches."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from distill.training.distillation import DistillModule
from support.commands import QUICK, go

STEPS = 4
LENGTH = [
    "loss.weights.gka=0.5",
    "data.batch_size=4",
    f"trainer.max_steps={STEPS}",
    "trainer.val_every=2",
    "lr=0.01",
]
TWO = [
    *("trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=2"),
    *("trainer.precision=32-true", "trainer.fused=true", "trainer.threads=1"),
    f"trainer.max_steps={STEPS}",
]


@pytest.mark.slow
def test_ddp_equals_accumulation_of_the_same_half_batches(here, monkeypatch):
    halves = []
    plain = DistillModule.training_step

    def recorded(self, batch, index):
        loss = plain(self, batch, index)
        halves.append(float(loss.detach()))
        return loss

    with monkeypatch.context() as patch:
        patch.setattr(DistillModule, "training_step", recorded)
        assert go("run=one", *LENGTH, "trainer.accumulate=2") == 0
    assert len(halves) == 2 * STEPS

    command = [sys.executable, "-m", "distill.train", "photos=photos", "decoder=residual"]
    done = subprocess.run(
        [*command, *QUICK, "run=two", *TWO, *LENGTH, "trainer.log_every=1"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("trained; best checkpoint") == 1  # one process speaks
    with Path("runs/two/metrics.csv").open() as table:
        rows = [row for row in csv.DictReader(table) if row["train/loss"]]
    logged = [float(row["train/loss"]) for row in rows]
    wanted = [(a + b) / 2 for a, b in zip(halves[::2], halves[1::2], strict=True)]
    # metrics.csv has six digits. BatchNorm and GKA see half-batches in both.
    assert logged == pytest.approx(wanted, rel=2e-5)

    one, two = (
        torch.load(f"runs/{name}/checkpoints/last.ckpt", weights_only=True)["state_dict"]
        for name in ("one", "two")
    )
    # BatchNorm's running statistics are those of the first process's halves only.
    weights = [k for k in one if "running" not in k and "num_batches" not in k]
    for key in weights:
        assert torch.allclose(one[key], two[key], rtol=0, atol=1e-6), key
