"""Checkpoints are written beside their place, not by way of the system's temporary files."""

import tempfile

import pytest
import torch

from support.commands import go


@pytest.mark.slow
def test_a_run_needs_no_other_place_for_its_checkpoints(here, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(here / "another disk, which is not there"))
    assert go("trainer.max_steps=2", "trainer.val_every=1") == 0
    folder = here / "runs/toon-residual/checkpoints"
    assert {path.name for path in folder.iterdir()} == {"best.ckpt", "last.ckpt"}
    for name in ("best.ckpt", "last.ckpt"):
        assert torch.load(folder / name, weights_only=True)["global_step"] in (1, 2)
