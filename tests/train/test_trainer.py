"""What ends a training in one line."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, TensorDataset

import distill
from distill.config import compose
from distill.config.settings.training import Train
from distill.core.errors import DistillError
from distill.runs.run_folder import Run
from distill.train.trainer import fit, make_trainer
from support.commands import QUICK, go

OWN: dict[str, Any] = {"encoder": {"weights": "none"}, "loss": "l1", "decoder": "residual"}


def test_a_number_of_devices_that_lightning_refuses(tmp_path):
    settings = compose.load("train", ["trainer.devices=-1"], Train)
    with pytest.raises(DistillError, match=r"^trainer: .*devices"):
        make_trainer(settings, Run(tmp_path), [])


class Idle(pl.LightningModule):
    student = torch.nn.Identity()

    def training_step(self, batch, index):
        return None

    def configure_optimizers(self):
        return None


class Ending(pl.Callback):
    def on_train_start(self, trainer, pl_module):
        raise ValueError("no more")


def test_what_a_callback_of_ones_own_raises_is_one_line(tmp_path):
    """As what other parts of the user's raise, with its place; Lightning's lines are not shown."""
    settings = compose.load("train", ["data.workers=0"], Train)
    run = Run(tmp_path / "run")
    trainer = make_trainer(settings, run, [Ending()], monitor=None)
    module = Idle()
    with pytest.raises(DistillError, match=rf"^training: ValueError \(no more, {__file__}:\d+\)$"):
        fit(trainer, module, DataLoader([0]), run, None)


@pytest.mark.slow
@pytest.mark.parametrize("words", ["batchnorm=learnt", "loss.balance=true", "lr=auto"])
def test_batchnorm_over_one_value_a_channel(here, capsys, words):
    more = ["data.crop_size=32", "data.batch_size=1", "trainer.max_steps=1"]
    assert go("run=one", *more, words) == 1
    last = capsys.readouterr().err.strip().splitlines()[-1]
    # Lightning's bar of lr=auto has no end of line before it.
    assert "error: BatchNorm has one value a channel in a batch: take larger crops" in last


@pytest.mark.slow
def test_a_last_batch_of_one_small_picture(here):
    photos = torch.rand(3, 3, 32, 32)
    pairs = DataLoader(TensorDataset(photos, 1 - photos), batch_size=2)
    with pytest.raises(DistillError, match=r"BatchNorm has one value .* drop_last=True"):
        distill.train_student(pairs, val=pairs, run="own", trainer={"max_steps": 4}, **OWN)


@pytest.mark.campaign
@pytest.mark.timeout(600)  # the start of two processes, on a busy machine
def test_where_one_of_two_processes_is_killed_the_other_ends_in_one_line(here):
    words = [
        "photos=photos",
        "decoder=residual",
        *QUICK,
        "run=two",
        "trainer=ddp",
        "trainer.devices=2",
    ]
    words += ["trainer=ddp", "trainer.devices=2", "trainer.accelerator=cpu"]
    words += ["trainer.precision=32-true", "trainer.threads=1"]
    words += ["trainer.max_steps=100000", "trainer.val_every=50000", "trainer.log_every=1"]
    command = [sys.executable, "-m", "distill.train", *words]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        table = Path("runs/two/metrics.csv")
        deadline = time.monotonic() + 400
        while not table.is_file():
            assert time.monotonic() < deadline
            assert first.poll() is None, first.stderr
            time.sleep(0.2)
        children = f"/proc/{first.pid}/task/{first.pid}/children"
        other = next(
            int(pid)
            for pid in Path(children).read_text().split()
            if b"LOCAL_RANK=1" in Path(f"/proc/{pid}/environ").read_bytes()
        )
        os.kill(other, signal.SIGKILL)
        _, said = first.communicate(timeout=150)
    finally:
        first.kill()
    assert first.returncode == 1
    assert "another of the 2 processes has ended (killed, or out of memory?)" in said
    assert "Traceback" not in said
