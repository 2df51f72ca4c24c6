"""Styles from the photo to the exported student: the paper's three, and real teachers."""

import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from distill.eval_fid import __main__ as eval_fid
from distill.export import __main__ as export
from distill.models.teachers.animegan2 import AnimeGANv2
from distill.prepare import __main__ as prepare
from distill.train import __main__ as train
from support.commands import run

QUICK = ["encoder.weights=none", "data.workers=0", "data.batch_size=2", "trainer.max_steps=2"]


@pytest.fixture
def noise_photos(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    rng = np.random.default_rng(1)
    for i in range(8):
        noise = Image.fromarray(rng.integers(0, 255, (5, 5, 3), dtype=np.uint8))
        noise.resize((70, 64)).save(tmp_path / "photos" / f"{i}.jpg")
    return "photos=photos"


@pytest.fixture
def real_photos(assets, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenes").mkdir()
    for path in sorted((assets / "photos" / "scenes").iterdir())[:8]:
        shutil.copy(path, tmp_path / "scenes")
    return "photos=scenes"


def test_a_file_of_the_right_name_but_another_hash_is_refused(
    noise_photos, tmp_path, monkeypatch, capsys
):
    (tmp_path / "weights").mkdir()
    torch.save(AnimeGANv2().state_dict(), tmp_path / "weights" / "paprika.pt")
    monkeypatch.setenv("DISTILL_WEIGHTS", str(tmp_path / "weights"))
    assert run(prepare, "style=paprika", noise_photos) == 1
    message = capsys.readouterr().err
    assert "58086c9db9fc7a9e5c2876ca31b8079599352643" in message
    assert "style.weights=FILE" in message
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
def test_real_hayao_from_photos_to_frechet_distances(real_photos, assets, tmp_path, monkeypatch):
    folders = [str((assets / name).resolve()) for name in ("teachers", "encoders", "perceptual")]
    monkeypatch.setenv("DISTILL_WEIGHTS", ":".join(folders))
    small = ["style.resolution=64", "data.val_fraction=0.5", "data.test_fraction=0", real_photos]
    small += ["style=hayao"]
    style_loss = ["loss=full", "style_backbone=vgg19_relu3_1", "data.batch_size=4", "channels=3"]
    quick = ["data.workers=0", "trainer.max_steps=2", "decoder=nnconv"]
    assert run(train, *small, *style_loss, *quick, "label.workers=0") == 0
    assert run(export, "exporter.size=64", "exporter.opset=9") == 0
    assert run(eval_fid, "features=mobilenet", "bootstrap=5", "ceiling=toon") == 0
    results = json.loads((tmp_path / "runs/hayao-nnconv/eval/results.json").read_text())
    assert "NOT an Inception FID" in results["features"]
    assert "biased upwards" in results["warning"]
    assert set(results["distances"]) == {
        "floor: T(A), T(B)", "student: T(A), S(B)", "ceiling: T(A), toon(B)", "paired: T(B), S(B)",
    }  # fmt: skip
    header = (tmp_path / "runs/hayao-nnconv/metrics.csv").read_text().splitlines()[0]
    assert {"train/l1", "train/sobel", "train/style", "train/gka"} <= set(header.split(","))


def test_gka_with_an_onnx_teacher_says_so(real_photos, assets, monkeypatch, capsys):
    monkeypatch.setenv("DISTILL_WEIGHTS", str((assets / "teachers").resolve()))
    overrides = ["style=whitebox", "data.val_fraction=0.5", "loss.weights.gka=1", "label.workers=0"]
    assert run(train, real_photos, *overrides, *QUICK) == 1
    assert "GKA needs the teacher's activations" in capsys.readouterr().err.splitlines()[-1]
