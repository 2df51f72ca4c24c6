"""What training on a GPU changes, as far as a CPU can show it."""

import csv
from pathlib import Path

import pytest
import torch

from distill.config import compose
from distill.config.settings.training import Train
from distill.core.errors import DistillError
from distill.models.teachers.animegan2 import AnimeGANv2, WholeNorm
from distill.train import __main__ as train
from distill.train import student_training, trainer
from distill.train.distillation import DistillModule
from support.commands import QUICK, go, run

FLY = ["data=photos", "data.batch_size=4", "trainer.max_steps=2", "trainer.val_every=1"]


def made(*overrides: str) -> DistillModule:
    """A module of hayao on the fly, with a teacher of random weights."""
    asked = ["style=hayao", "data=photos", "encoder.weights=none", "data.batch_size=4", *overrides]
    return student_training.student_module(compose.load("train", asked, Train), AnimeGANv2())


def column(name: str, key: str) -> list[float]:
    """A run's values of one metric."""
    with Path(f"runs/{name}/metrics.csv").open() as table:
        return [float(row[key]) for row in csv.DictReader(table) if row[key]]


@pytest.fixture
def no_gpu(monkeypatch):
    for kind in (torch.cuda, torch.backends.mps):
        monkeypatch.setattr(kind, "is_available", lambda: False)


@pytest.mark.parametrize("choice", ["gpu", "ddp"])
def test_without_a_gpu_one_line_says_so_and_what_to_do(here, capsys, no_gpu, choice):
    assert run(train, *QUICK, "photos=photos", f"trainer={choice}") == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("error: trainer.accelerator=gpu: no GPU here (torch ")
    assert lines[-1].endswith("train on the CPU with trainer=cpu")
    assert not (here / "data").exists()  # found out before anything was labelled


def test_a_card_without_bfloat16_is_told_what_to_take(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: False)
    settings = compose.load("train", ["trainer=gpu"], Train)
    with pytest.raises(DistillError, match="precision=16-mixed trainer"):
        trainer.make_trainer(settings, None, None)


@pytest.mark.campaign
def test_bfloat16_with_a_fused_optimiser_and_clipping_trains(here):
    assert go("run=narrow", *FLY, "trainer=gpu", "trainer.accelerator=cpu") == 0
    assert len(column("narrow", "train/loss")) == 2
    saved = torch.load("runs/narrow/checkpoints/last.ckpt", weights_only=True)["state_dict"]
    assert {v.dtype for v in saved.values()} == {torch.float32, torch.int64}


def test_clipping_bounds_the_norm_of_all_gradients():
    module = made()
    optimiser = module.make_optimizer(module.student.parameters(), 1e-3)
    for value in module.student.parameters():
        value.grad = torch.ones_like(value)
    module.configure_gradient_clipping(optimiser, 0.5, "norm")
    grads = torch.cat([p.grad.flatten().double() for p in module.student.parameters()])
    assert float(grads.norm()) == pytest.approx(0.5, rel=1e-3)
    assert float(grads.min()) == float(grads.max())  # the direction stays


@pytest.mark.slow
def test_compiling_takes_student_and_losses_in_training_alone(here, monkeypatch):
    calls = []

    def compiled(function, **_):
        def wrapper(*given):
            calls.append((type(function.__self__).__name__, function.__self__.training))
            return function(*given)

        return wrapper

    monkeypatch.setattr(torch, "compile", compiled)
    monkeypatch.setattr(student_training.shutil, "which", lambda name: name)
    gka = [*FLY, "loss.weights.gka=0.5"]
    for name, asked in {"plain": [], "compiled": ["trainer.compile=true"]}.items():
        assert go(f"run={name}", *gka, *asked) == 0
    assert calls == [("Student", True), ("Criterion", True)] * 2
    quick = column("compiled", "train/gka")
    assert quick == pytest.approx(column("plain", "train/gka"), rel=1e-4)


def test_the_teacher_on_the_fly_is_in_its_fast_form_with_the_same_output():
    torch.manual_seed(1)
    teacher = AnimeGANv2()
    photo = torch.rand(2, 3, 64, 64)
    before, print_before = teacher(photo), teacher.fingerprint()
    settings = compose.load("train", ["style=hayao", "data=photos", "encoder.weights=none"], Train)
    module = student_training.student_module(settings, teacher)
    assert module.teacher is not None
    assert not any(isinstance(m, WholeNorm) for m in module.teacher.modules())
    output = module.target_of({"photo": photo})
    torch.testing.assert_close(output, before, rtol=0, atol=1e-5)
    assert not output.requires_grad
    assert module.teacher.fingerprint() == print_before


@pytest.mark.slow
def test_under_autocast_labels_and_losses_stay_float32():
    module, photo = made().train(), torch.rand(4, 3, 64, 64)
    target = module.target_of({"photo": photo})
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(module.target_of({"photo": photo}), target)
        total, raw, (output, _) = module.compare({"photo": photo, "target": target})
    assert {t.dtype for t in (total, output, *raw.values())} == {torch.float32}
    wide, _ = module.criterion(output, target)
    assert torch.equal(total, wide)
