"""The whole path as a user types it, in one process, on small pictures and few steps."""

import csv
import json
import re
import shutil
from pathlib import Path

import onnx
import pytest
import torch

from distill.check import __main__ as check
from distill.core.errors import DistillError
from distill.eval_fid import __main__ as eval_fid
from distill.export import __main__ as export
from distill.models.checkpoint import lineage, load_student
from distill.prepare import __main__ as prepare
from distill.stylize import __main__ as stylize
from distill.train import __main__ as train
from distill_lens import __main__ as lens
from support.commands import QUICK, SMALL, go, run


def said(capsys):
    return capsys.readouterr().out


@pytest.mark.slow
def test_a_run_is_used_from_another_folder_and_copied(here, monkeypatch, capsys):
    assert go("trainer.max_steps=2", "run=mine") == 0
    (here / "other").mkdir()
    monkeypatch.chdir(here / "other")
    asked = f"run={here / 'runs/mine'}"
    assert run(export, asked, "exporter.size=64") == 0
    assert run(eval_fid, asked, "features=none", "flicker=0", "bootstrap=10") == 0
    assert run(stylize, str(here / "photos/Person_1_0001.png"), asked, "threads=1") == 0
    assert (here / "other/stylized/Person_1_0001-mine.png").is_file()
    assert run(lens, asked, "serve=false", "output=page") == 0
    assert sorted(path.name for path in Path().iterdir()) == ["page", "stylized"]

    shutil.move(here / "runs/mine", here / "other/mine")
    for name in ("photos", "data"):
        shutil.rmtree(here / name)
    assert run(export, "run=mine", "runs=.", "exporter.size=64") == 0
    assert run(stylize, "page/index.html", "run=mine", "runs=.") == 1
    capsys.readouterr()
    assert run(eval_fid, "run=mine", "runs=.", "features=none") == 1
    assert "photos=photos: no such folder" in capsys.readouterr().err


@pytest.mark.slow
def test_prepare_train_resume_export_evaluate(here, capsys):
    assert run(prepare, "photos=photos", *SMALL) == 0
    assert f"next: python -m distill.train photos=photos {' '.join(SMALL)}\n" in said(capsys)
    root = here / "data/pairs/toon-photos-64-crop90"
    assert json.loads((root / "dataset.json").read_text())["counts"]["skipped"] == 0
    stamps = {p: p.stat().st_mtime_ns for p in root.rglob("*.png")}

    assert go("trainer.max_steps=4", "trainer.val_every=2") == 0
    folder = here / "runs/toon-residual"
    assert {p: p.stat().st_mtime_ns for p in root.rglob("*.png")} == stamps  # labelled once
    for name in ("config.yaml", "metrics.csv", "checkpoints/last.ckpt", "checkpoints/best.ckpt"):
        assert (folder / name).is_file(), name
    assert sorted(p.name for p in (folder / "previews").iterdir()) == [
        "step-000002.png", "step-000004.png",
    ]  # fmt: skip
    assert list((folder / "tensorboard").glob("events.*"))
    rows = list(csv.DictReader((folder / "metrics.csv").open()))
    assert [int(r["step"]) for r in rows if r["train/loss"]] == [1, 2, 3, 4]
    assert [int(r["step"]) for r in rows if r["val/psnr"]] == [2, 4]
    assert all(float(r["health/living_weights"]) > 0.9 for r in rows if r["val/psnr"])

    capsys.readouterr()
    assert go("trainer.max_steps=4", "trainer.val_every=2") == 0
    assert "finished at step 4" in capsys.readouterr().out
    assert go("trainer.max_steps=6", "trainer.val_every=2") == 0
    assert "resumes at step 4" in capsys.readouterr().out
    rows = list(csv.DictReader((folder / "metrics.csv").open()))
    assert [int(r["step"]) for r in rows if r["train/loss"]] == [1, 2, 3, 4, 5, 6]

    said(capsys)
    assert run(export, "exporter.size=64") == 0
    assert said(capsys).endswith("next: python -m distill.eval_fid run=toon-residual\n")
    assert run(check, str(folder / "export/student.onnx")) == 0
    assert said(capsys).endswith(f"distill.benchmark model={folder / 'export/student.onnx'}\n")
    report = json.loads((folder / "export/report.json").read_text())
    assert report["ok"]
    model = onnx.load(str(folder / "export/student.onnx"))
    assert [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim] == [1, 3, 64, 64]
    assert run(export, "exporter.size=64", "budget.macs=1000") == 1
    assert not (folder / "export/student.onnx").exists()
    assert not json.loads((folder / "export/report.json").read_text())["ok"]

    assert run(eval_fid, "features=none", "bootstrap=10") == 0
    assert said(capsys).endswith("next: python -m distill.stylize PHOTO.jpg run=toon-residual\n")
    results = json.loads((folder / "eval/results.json").read_text())
    assert results["similarity"]["PSNR (dB), student to teacher"]["value"] > 5
    assert (folder / "eval/contact_sheet.png").is_file()
    assert run(eval_fid, "features=inception", "bootstrap=0") == 3  # no weights, all else done
    assert "pt_inception" in json.loads((folder / "eval/results.json").read_text())["fid_missing"]
    assert run(eval_fid, "features=none", "photos=photos", "ceiling=toon") == 0


@pytest.mark.slow
def test_a_loss_that_is_not_finite_names_step_terms_and_pictures(here, capsys):
    assert go("lr=1e30", "trainer.clip=null", "trainer.max_steps=9", "schedule=constant") == 1
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.startswith("error: the loss is nan at step ")
    assert "l1 nan" in message
    assert ".png" in message


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["photos=nowhere"], "photos=nowhere: no such folder; put photos there"),
        (["photos=photos", "loss.weights.gka=1", "data.batch_size=2"], "needs at least 4"),
        (
            [
                "photos=photos",
                "gka_layers=[[no,smooth]]",
                "loss.weights.gka=1",
                "data.batch_size=4",
            ],
            "no layer 'no'",
        ),
        (["photos=photos", "channels=4"], "channels=4: the teacher's output is RGB"),
        (["photos=photos", "channels=1"], "set channels=3, or name pairs of your own"),
        (["photos=photos", "channels=2"], "channels"),
        (["photos=photos", "data=photos", "data.camera=0.3"], "data.camera=0.3: of pairs"),
        (["photos=photos", "runs=photos/Person_0_0001.png"], "name one with runs=DIR"),
        (["photos=photos", "optimizer.weight_decay=-1"], "optimizer: Invalid weight_decay"),
        (["photos=photos", "trainer.precision=16-mixed"], "set trainer.fused=false"),
        (["photos=photos", "decoder=fastdepth", "decoder.build.kernel=4"], "must be odd"),
        (["photos=photos", "run=../up"], "run='../up'"),
        (["photos=photos", "loss=l1", "loss.weights.l1=0"], "every loss weight is 0"),
        (["data.root=nowhere"], "data.root=nowhere: no such folder, and no photos=data/photos"),
        (["photos=photos", "style=paprika", "style.weights=no.pt"], "style.weights=no.pt: no such"),
        (["photos=photos", "style.resolution=100"], "should be a multiple of 32"),
    ],
)
@pytest.mark.campaign
def test_bad_input_ends_in_one_line(here, capsys, overrides, message):
    assert run(train, *QUICK, "trainer.max_steps=1", *overrides) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ")
    assert message in error
    assert not (here / "data").exists()  # found out before anything was labelled


def test_missing_weights_say_how_to_supply_them(here, capsys, monkeypatch):
    monkeypatch.setenv("DISTILL_WEIGHTS", "")
    assert run(prepare, "photos=photos", "style=hayao") == 1
    message = capsys.readouterr().err
    for part in ("animegan2_hayao.pt", "a01e0ca5", "DISTILL_WEIGHTS", "style.weights=FILE"):
        assert part in message


def test_export_and_evaluation_without_a_run(here, capsys):
    assert run(export) == 1
    assert run(eval_fid, "features=none") == 1
    assert run(eval_fid, "features=none", "a=photos") == 1
    assert run(eval_fid, "features=none", "a=photos", "b=nowhere") == 1
    assert run(eval_fid, "features=none", "a=photos", "b=photos") == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith("error: ")] == lines
    assert len(lines) == 5


@pytest.mark.slow
def test_a_run_starts_from_a_trained_student(here, capsys):
    assert go("run=first", "trainer.max_steps=3") == 0
    first = here / "runs/first/checkpoints/last.ckpt"
    named = [f"init={first}", "run=second", "trainer.max_steps=1"]
    assert go(*named, "lr=1e-9", "encoder.weights=missing.safetensors") == 0  # not read
    before, _ = load_student(first)  # the averaged weights
    after, settings = load_student(here / "runs/second/checkpoints/last.ckpt")
    for name, value in before.named_parameters():
        torch.testing.assert_close(after.get_parameter(name), value, atol=1e-7, rtol=0)
    assert [made.run for made in lineage(settings)] == ["second", "first"]

    capsys.readouterr()
    assert go(*named, "run=third", "decoder=nnconv") == 1
    error = f"error: init={first}: another network than this run's; set encoder=, decoder= and"
    assert error in capsys.readouterr().err
    assert go("init=runs/first", "run=fourth", "trainer.max_steps=1") == 0
    assert load_student(here / "runs/fourth/checkpoints/last.ckpt")[1].init == (
        "runs/first/checkpoints/best.ckpt"
    )
    first.unlink()
    assert go(*named, "run=third") == 1
    assert f"error: {first}: " in capsys.readouterr().err
    with pytest.raises(DistillError, match=re.escape(str(first))):
        lineage(settings)
