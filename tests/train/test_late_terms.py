"""Terms that begin late, and terms that ask the student again, in a run."""

import csv
from pathlib import Path

import pytest
import torch

from distill.config import compose
from distill.config.settings.training import Train
from distill.models.students.student import Student
from distill.models.teachers.teacher import Teacher
from distill.train import student_training, tuning
from distill.train.distillation import DistillModule
from distill_drawings.toon import Toon
from support.commands import go

LATE = ["loss.weights.differences=1", "loss.start.differences=0.5"]


def rows(name: str) -> list[dict[str, str]]:
    with Path(f"runs/{name}/metrics.csv").open() as table:
        return list(csv.DictReader(table))


def module(*overrides: str, teacher: Teacher | None = None) -> DistillModule:
    asked = ["encoder.weights=none", "decoder=residual", *overrides]
    return student_training.student_module(compose.load("train", asked, Train), teacher)


@pytest.mark.parametrize("more", [[], ["trainer.accumulate=2"]], ids=["plain", "accumulated"])
@pytest.mark.campaign
def test_a_late_term_trains_from_its_step_on_and_is_always_validated(here, more):
    steps = ["trainer.max_steps=4", "trainer.val_every=1"]
    assert go("run=late", *steps, *LATE, *more) == 0
    train = {row["step"]: row for row in rows("late") if row["train/loss"]}
    # The step that is logged as 3 is the third: two of four were done before it.
    assert [bool(train[step]["train/differences"]) for step in "1234"] == [False, False, True, True]
    for row in train.values():
        terms = ("l1", "sobel", "differences")
        parts = [float(row[f"train/{name}_weighted"] or 0) for name in terms]
        assert float(row["train/loss"]) == pytest.approx(sum(parts), rel=1e-4)
    val = [row for row in rows("late") if row["val/loss"]]
    assert len(val) == 4
    for row in val:
        parts = float(row["val/l1"]) + 6 * float(row["val/sobel"]) + float(row["val/differences"])
        assert float(row["val/loss"]) == pytest.approx(parts, rel=1e-4)


@pytest.mark.campaign
def test_the_rate_is_found_by_the_loss_that_the_run_begins_with(here, monkeypatch):
    counted = []
    plain = DistillModule.training_step

    def recorded(self, batch, index):
        counted.append(self.criterion._counting(len(batch["photo"])))
        return plain(self, batch, index)

    monkeypatch.setattr(DistillModule, "training_step", recorded)
    monkeypatch.setattr(tuning, "RATES", 12)
    assert go("run=found", "lr=auto", "trainer.max_steps=2", *LATE) == 0
    early = ("l1", "sobel")
    assert counted == [early] * 13 + [(*early, "differences")]


@pytest.mark.slow
def test_balance_measures_terms_that_start_late_too(here, capsys):
    assert go("run=even", "loss.balance=true", "trainer.max_steps=2", *LATE) == 0
    assert "differences ×" in capsys.readouterr().out


def test_the_further_passes_of_a_step_see_what_the_first_does_and_leave_no_trace(monkeypatch):
    """Activations for GKA are those of the photo, the running statistics those of one pass."""
    torch.manual_seed(0)
    made = module("loss.weights.stable=1", "data.batch_size=4").train()
    passes = []
    plain = Student.forward

    def recorded(self, photo):
        passes.append((photo.shape, self.training, torch.is_autocast_enabled("cpu")))
        return plain(self, photo)

    monkeypatch.setattr(Student, "forward", recorded)
    photo, target = torch.rand(4, 3, 64, 64), torch.rand(4, 3, 64, 64)
    with torch.autocast("cpu", torch.bfloat16):
        total, raw, (output, _) = made.compare({"photo": photo, "target": target})
    assert passes == [((4, 3, 64, 64), True, True)] * 3
    assert {t.dtype for t in (total, output, *raw.values())} == {torch.float32}
    assert raw["stable"] > 0
    counts = {int(v) for k, v in made.student.state_dict().items() if "num_batches" in k}
    assert counts == {1}


def test_activations_are_those_of_the_photo_itself():
    def alignment(*more: str) -> torch.Tensor:
        torch.manual_seed(0)
        made = module("loss.weights.gka=1", "data.batch_size=4", *more, teacher=Toon()).train()
        photo = torch.rand(4, 3, 64, 64)
        return made.compare({"photo": photo, "target": photo})[1]["gka"]

    assert torch.equal(alignment(), alignment("loss.weights.stable=1"))
