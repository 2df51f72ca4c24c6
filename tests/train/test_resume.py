"""Stopped anywhere and gone on, on as many threads: the same to the last bit as never stopped."""

import re
import signal
from pathlib import Path

import pytest
import torch

from distill.runs.run_folder import Run
from support.commands import go
from support.last_checkpoints import differences, saved

# The number of threads decides the last bits, and `threads=null` follows what else runs.
LENGTH = ["trainer.max_steps=6", "trainer.val_every=3", "trainer.threads=1"]


@pytest.mark.campaign
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "more",
    [
        [],
        ["trainer.accumulate=2"],
        ["schedule=plateau", "schedule.patience=0", "schedule.threshold=0.99"],
        ["data=photos", "ema=0.9", "trainer.patience=9"],
        # Terms that draw at random: one from the start, one from step 3 on, where it is stopped.
        [
            "loss.weights.stable=1",
            "loss.weights.features=0.1",
            "loss.start.features=0.5",
            "loss.terms.features.side=32",
        ],
        ["data.sizes=[96]", "data.val_limit=4", "global_statistics=thumbnail"],
    ],
    ids=["cosine", "accumulated", "plateau", "on-the-fly", "drawn-at-random", "several-sizes"],
)
@pytest.mark.usefixtures("vgg_in_small")
def test_interrupted_mid_epoch_and_resumed_equals_uninterrupted(here, signal_at, more, workers):
    options = [*LENGTH, f"data.workers={workers}", *more]
    assert go("run=whole", *options) == 0
    signal_at(2, signal.SIGTERM)  # between two validations
    assert go("run=parts", *options) == 130
    assert saved("parts")["global_step"] == 2
    signal_at(3, signal.SIGINT)  # where a validation is due
    assert go("run=parts", *options) == 130
    assert saved("parts")["global_step"] == 3
    assert go("run=parts", *options) == 0
    whole, parts = saved("whole"), saved("parts")
    for part in ("state_dict", "optimizer_states", "lr_schedulers", "global_step"):
        assert not differences(whole[part], parts[part], part)
    average = [c["callbacks"]["StudentEMA"] for c in (whole, parts)]
    assert not differences(*average, "StudentEMA")
    tables = [Path("runs") / name / "metrics.csv" for name in ("whole", "parts")]
    assert tables[0].read_text() == tables[1].read_text()


@pytest.mark.slow
def test_stopped_before_the_last_step_and_resumed_equals_uninterrupted(here, signal_at):
    """Its batch is the last of the epoch; a term draws by the number of the batch."""
    length = ["trainer.max_steps=2", "trainer.val_every=1", "trainer.threads=1"]
    options = [*length, "loss.weights.stable=1"]
    assert go("run=whole", *options) == 0
    signal_at(1, signal.SIGTERM)
    assert go("run=parts", *options) == 130
    assert saved("parts")["global_step"] == 1
    assert go("run=parts", *options) == 0
    whole, parts = saved("whole"), saved("parts")
    for part in ("state_dict", "optimizer_states", "loops", "epoch"):
        assert not differences(whole[part], parts[part], part)


@pytest.mark.slow
def test_a_signal_ends_after_the_running_step_and_says_where(here, signal_at, capfd):
    signal_at(2, signal.SIGTERM)
    assert go("run=stopped", *LENGTH) == 130
    said = capfd.readouterr()
    assert "stopped at step 2; run it again to resume" in said.err
    assert "\nfinishing the step, then saving; once more: ends at once\n" in said.err
    assert saved("stopped")["distill"]["trainer"]["threads"] == 1  # the settings, as plain values
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL  # handlers of before are back


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.999])
@pytest.mark.campaign
def test_a_checkpoint_cut_short_is_said_and_the_one_before_used(here, monkeypatch, capsys, keep):
    assert go("run=whole", *LENGTH) == 0
    monkeypatch.setattr("distill.train.callbacks.checkpoints.EVERY", 0)
    assert go("run=parts", *LENGTH) == 0
    run = Run(Path("runs/parts"))
    content = run.last.read_bytes()
    run.last.write_bytes(content[: int(keep * len(content))])
    capsys.readouterr()
    assert go("run=parts", *LENGTH) == 0
    said = capsys.readouterr().out
    assert "last.ckpt: damaged" in said
    assert "previous.ckpt, step 5, is used instead" in said
    assert "resumes at step 5" in said
    assert not differences(saved("whole")["state_dict"], saved("parts")["state_dict"])


@pytest.mark.slow
def test_weights_that_are_not_finite_are_named_before_the_first_step(here, signal_at, capsys):
    signal_at(2, signal.SIGTERM)
    assert go("run=parts", *LENGTH) == 130
    last = Run(Path("runs/parts")).last
    checkpoint = saved("parts")
    checkpoint["state_dict"]["student.decoder.out.bias"][0] = torch.nan
    torch.save(checkpoint, last)
    before = last.read_bytes()
    assert go("run=parts", *LENGTH) == 1
    error = capsys.readouterr().err
    assert "last.ckpt: values that are not finite" in error
    assert "student.decoder.out.bias" in error
    assert last.read_bytes() == before


REFUSED = [
    "lr=0.002",
    "seed=1",
    "ema=0.9",
    "data.batch_size=3",
    "data.flip=false",
    "data.val_limit=5",
    "loss.weights.sobel=2",
    "loss.balance=true",
    "trainer.accumulate=2",
    "trainer.clip=2",
    "trainer.val_every=2",
    "schedule.warmup=7",
    "loss.start.sobel=0.5",
    "decoder.name=nnconv",
]
FREE = [
    "data.workers=1",
    "trainer.patience=3",
    "trainer.log_every=2",
    "trainer.threads=1",
    "trainer.devices=1",
]


@pytest.mark.campaign
def test_a_resume_with_another_setting_is_refused_with_the_difference(here, capsys):
    assert go("run=one", "trainer.max_steps=1") == 0
    capsys.readouterr()
    for change in REFUSED:
        assert go("run=one", "trainer.max_steps=2", change) == 1
        error = capsys.readouterr().err
        key, _, value = change.partition("=")
        assert re.search(rf"{re.escape(key.removesuffix('.name'))}( × devices)?: ", error), error
        assert re.search(rf" then, '?{value}(\.0)?'? now", error, re.IGNORECASE), error
    assert saved("one")["global_step"] == 1
    assert go("run=one", "trainer.max_steps=2", *FREE) == 0  # length, machine and logging
    assert saved("one")["global_step"] == 2


@pytest.mark.campaign
def test_early_stop_ends_the_run_until_it_may_wait_longer(here, capsys, recwarn):
    # A rate of nothing: val/loss never falls after the first validation.
    still = ["lr=1e-12", "trainer.val_every=1", "trainer.max_steps=9", "trainer.patience=2"]
    assert go("run=still", *still, "ema=0", "schedule=constant") == 0
    assert "ended early at step 3: val/loss had not fallen for 2 validations" in (
        capsys.readouterr().out
    )
    assert saved("still")["global_step"] == 3
    assert go("run=still", *still, "ema=0", "schedule=constant") == 0
    said = capsys.readouterr().out
    assert "ended early at step 3" in said
    assert "trainer.max_steps goes on" not in said  # as more steps do nothing for it
    assert saved("still")["global_step"] == 3
    longer = [*still, "ema=0", "schedule=constant", "trainer.patience=4"]
    assert go("run=still", *longer) == 0
    said = capsys.readouterr().out
    assert "resumes at step 3" in said
    assert "ended early at step 5: val/loss had not fallen for 4 validations" in said
    assert go("run=still", *longer, "trainer.patience=null") == 0  # as there is no end to it
    assert saved("still")["global_step"] == 9
    assert not [w for w in recwarn if "callbacks" in str(w.message)]
