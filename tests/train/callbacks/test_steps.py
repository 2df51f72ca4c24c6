"""A training run on as many threads as are fastest, or as the user says."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from distill.core import threads
from distill.core.errors import DistillError
from distill.core.threads import process_tuner
from distill.train.callbacks.reports import MetricsTable
from distill.train.callbacks.steps import Finite
from support.commands import go
from support.last_checkpoints import differences, saved

LENGTH = ["trainer.max_steps=3", "trainer.val_every=3", "data.workers=0"]


@pytest.fixture
def used(here, monkeypatch):
    """The number of threads of every step, on two cores where one thread is faster."""
    for name in threads.CHOSEN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "_layers", lambda most: {1: 0.02, 2: seconds_of_two[0]}.get)
    seconds_of_two, counts = [0.3], []
    plain = MetricsTable.on_train_batch_end

    def hook(self, trainer, *args):
        counts.append(torch.get_num_threads())
        return plain(self, trainer, *args)

    monkeypatch.setattr(MetricsTable, "on_train_batch_end", hook)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    process_tuner.cache_clear()
    yield counts, seconds_of_two
    process_tuner.cache_clear()
    torch.set_num_threads(before)


@pytest.mark.slow
def test_steps_run_on_the_number_that_is_best_and_a_line_says_so(used, capsys):
    counts, _ = used
    assert go("run=one", *LENGTH) == 0
    assert counts == [1, 1, 1]
    assert torch.get_num_threads() == 2
    assert "step 0: other programs use the cores, 1 thread instead of 2" in capsys.readouterr().out


@pytest.mark.campaign
def test_a_number_that_the_user_set_stays(used):
    counts, _ = used
    assert go("run=one", *LENGTH, "trainer.threads=2") == 0
    assert counts == [2, 2, 2]


@pytest.mark.campaign
def test_on_idle_cores_a_run_is_to_the_last_bit_that_of_all_threads(used):
    counts, seconds_of_two = used
    seconds_of_two[0] = 0.011
    assert go("run=free", *LENGTH) == 0
    assert go("run=fixed", *LENGTH, "trainer.threads=2") == 0
    assert counts == [2] * 6
    assert not differences(saved("free")["state_dict"], saved("fixed")["state_dict"])
    tables = [Path("runs") / name / "metrics.csv" for name in ("free", "fixed")]
    assert tables[0].read_text() == tables[1].read_text()


def test_a_validation_whose_loss_is_no_number():
    """lr=2: the loss of the steps was one, by the batches' statistics, that of validation was not,
    and the run ended as trained."""
    figures = {"val/loss": torch.tensor(float("nan"))}
    with pytest.raises(DistillError, match=r"^the validation's loss is nan at step 2; lower lr"):
        Finite().on_validation_end(SimpleNamespace(callback_metrics=figures, global_step=2))
