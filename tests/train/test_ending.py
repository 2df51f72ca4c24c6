"""What a training says at its end."""

from pathlib import Path

import pytest

from distill.runs.run_folder import Run
from distill.train.ending import outcome
from support.commands import go

HEAD = "step,train/loss,val/loss,val/psnr,val/ssim,val/photo_psnr,val/photo_ssim"


def run_with(folder: Path, *rows: str, head: str = HEAD) -> Run:
    folder.mkdir(parents=True)
    (folder / "metrics.csv").write_text("\n".join([head, *rows]) + "\n")
    return Run(folder)


def test_the_last_validation_counts_and_the_photos_are_beside_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = run_with(
        Path("runs/mine"), "5,,1,20,0.7,18.2,0.66", "10,,1,23.31,0.8125,18.2,0.66", "10,0.5,,,,,"
    )
    (run.folder / "previews").mkdir()
    for step in (5, 10):
        (run.folder / f"previews/step-{step:06d}.png").touch()
    assert outcome(run, "student") == [
        "validation at step 10: student 23.31 dB, SSIM 0.812; the photos themselves 18.20 dB, "
        "SSIM 0.660",
        "preview: runs/mine/previews/step-000010.png",
        "next: python -m distill.export run=mine",
    ]


@pytest.mark.parametrize(("student", "said"), [(18.2, True), (17, True), (18.3, False)])
def test_a_student_no_better_than_the_photos_is_told_what_to_do(tmp_path, student, said):
    run = run_with(tmp_path / "my runs/a", f"5,,1,{student},0.7,18.2,0.66")
    lines = outcome(run, "student")
    assert any("train longer" in line for line in lines) == said
    assert lines[-1] == f"next: python -m distill.export run=a runs='{tmp_path}/my runs'"


@pytest.mark.parametrize(("style", "said"), [(0.47, True), (0.40, False)])
def test_a_style_that_is_not_learnt_is_said(tmp_path, style, said):
    head = "step,val/style,val/photo_style,val/content"
    lines = outcome(run_with(tmp_path / "a", f"8,{style},0.5,0.1", head=head), "student")
    assert any("has not learnt the style yet" in line for line in lines) == said


def test_a_run_by_style_alone_has_no_content(tmp_path):
    head = "step,val/style,val/photo_style"
    lines = outcome(run_with(tmp_path / "a", "8,0.4,0.5", head=head), "student")
    assert lines[0] == "validation at step 8: style 0.400 (photos 0.500)"


def test_a_job_of_a_sweep_is_not_exported_by_itself(tmp_path):
    lines = outcome(run_with(tmp_path / "sweep-lr/a", "5,,1,21,0.7,18.2,0.66"), "student")
    assert len(lines) == 1
    assert lines[0].startswith("validation at step 5: ")


def test_runs_of_other_recipes_and_older_ones(tmp_path):
    pairs = run_with(tmp_path / "a", "5,,1,21,0.7", head="step,train/loss,val/l1,val/psnr,val/ssim")
    assert outcome(pairs, "generator")[0] == "validation at step 5: generator 21.00 dB, SSIM 0.700"
    psnr_alone = run_with(tmp_path / "c", "5,21", head="step,val/psnr")
    assert outcome(psnr_alone, "network")[0] == "validation at step 5: network 21.00 dB"
    unpaired = run_with(tmp_path / "b", "5,612.34", head="step,val/frechet")
    assert outcome(unpaired, "generator")[0] == "validation at step 5: Fréchet 612.3"
    assert len(outcome(Run(tmp_path / "none"), "generator")) == 1


@pytest.mark.usefixtures("here")
@pytest.mark.campaign
def test_train_says_it_and_says_it_again(capsys):
    assert go("run=mine", "trainer.max_steps=2") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-4].startswith("validation at step 2: student ") or "no better" in said[-3]
    assert said[-2].startswith("preview: runs/mine/previews/step-000002.png")
    assert said[-1] == "next: python -m distill.export run=mine"
    assert go("run=mine", "trainer.max_steps=2") == 0
    again = capsys.readouterr().out.splitlines()
    assert again[-3:] == said[-3:]
