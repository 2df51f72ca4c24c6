"""recipe=picture: style pictures that are of no use, what is learnt, and a short run."""

import csv
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from distill.config import compose
from distill.config.registry import schema_of
from distill.core.errors import DistillError
from distill.data.licence_terms import terms_of, terms_of_run
from distill.eval_fid import __main__ as eval_fid
from distill.export import __main__ as export
from distill.losses import feature_distance
from distill.models.teachers.unchanged import Unchanged
from distill.runs.run_folder import Run, step_of
from distill.train import __main__ as train
from distill.train import tuning
from distill.train.student_training import student_module
from distill_picture import picture_losses as picture
from distill_picture.picture_scores import run_criterion, term_values
from distill_picture.picture_training import PictureModule, train_minutes, with_length, with_terms
from distill_picture.settings import PictureTrain
from distill_picture.style_pictures import style_pictures
from support.commands import QUICK, run
from support.small_vgg import small_vgg


@pytest.fixture
def small(monkeypatch):
    network = small_vgg()
    for module in (picture, feature_distance):
        monkeypatch.setattr(module, "vgg_features", lambda *_: network)
    monkeypatch.setattr(picture, "LAYERS", ("first", "second"))
    monkeypatch.setattr("torch.cpu._is_avx512_bf16_supported", lambda: False)


def settings(*words: str) -> PictureTrain:
    return compose.load("train", ["recipe=picture", "photos=photos", *QUICK, *words], schema_of)


def module_of(said: PictureTrain) -> PictureModule:
    made = student_module(said, Unchanged().freeze(), PictureModule)
    assert isinstance(made, PictureModule)
    return made


@pytest.mark.parametrize(
    ("name", "made", "said"),
    [
        (
            "none.png",
            None,
            r"style_image=none\.png: no such file; name a picture, or one of dawn, ",
        ),
        ("text.png", b"words", "not a picture, or of an unknown kind; name another picture"),
        ("small.png", (3, 3), "3×3 pixels: smaller than 64 a side; name another picture"),
        ("flat.png", (90, 70), "is of one colour, there is no style to learn"),
        ("huge.png", (10_000, 10_000), "larger than 89478485 pixels; name another picture"),
    ],
)
def test_a_style_picture_of_no_use(name, made, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if isinstance(made, bytes):
        Path(name).write_bytes(made)
    elif made:
        Image.new("1" if made[0] > 999 else "RGB", made).save(name)
    with pytest.raises(DistillError, match=said):
        style_pictures(settings(f"style_image={name}"))


def test_without_the_style_s_term_nothing_is_learnt(small):
    with pytest.raises(DistillError, match=r"^loss\.weights\.style=0: recipe=picture learns"):
        module_of(settings("loss.weights.style=0"))


def test_weights_are_one_for_each_picture():
    words = ["style_image=[swirl,glass]", "picture.weights=[1]"]
    with pytest.raises(DistillError, match="1 number for 2 style pictures; give one each"):
        style_pictures(settings(*words))


def test_scale_is_the_size_that_a_style_is_seen_at(capsys):
    sizes = [style_pictures(settings(f"picture.scale={s}"))[0].shape for s in (0.5, 1, 2)]
    assert [tuple(s) for s in sizes] == [(3, 256, 256), (3, 512, 512), (3, 1024, 1024)]
    assert settings("style_image=[swirl,a/my.glass.png]").style.name == "swirl+my.glass"


@pytest.mark.parametrize("stable", [8, 0])
def test_training_does_not_see_where_the_borders_are(small, stable):
    """Without `stable` it does: nothing else would ask for the same output beside zeros."""
    module = module_of(settings(f"loss.weights.stable={stable}")).train()
    grey = torch.full((1, 3, 64, 64), 0.4)
    for parameter in module.student.parameters():  # it begins as the photo, without a texture
        torch.nn.init.normal_(parameter, std=0.1)
    steps = [
        output[..., 2:, 2:] - output[..., :-2, :-2]  # patches of 2×2
        for output in (module.compare({"photo": grey})[2][0], module.student(grey))
    ]
    assert (steps[0].abs().max() < 1e-6) == bool(stable)
    assert steps[1].abs().max() > 1e-3  # with zeros, as `stable` sees it


@pytest.mark.usefixtures("small")
def test_every_weight_of_the_student_learns_and_terms_pull_alike():
    module = module_of(settings()).train()
    other = torch.rand(2, 3, 64, 64)  # a teacher's, as sets of pairs have it
    batch = {"photo": torch.rand(2, 3, 64, 64), "target": other, "name": ["a", "b"]}
    data: Any = SimpleNamespace(
        first_batches=lambda _: [batch], on_after_batch_transfer=lambda given, _: given
    )
    factors = tuning.balance(module, data, torch.device("cpu"), gradients=True)
    assert factors.keys() == {"content", "style", "smooth"}  # `stable` asks the network
    found = module(batch["photo"]).detach()
    mixed = ((found + found[[1, 0]]) / 2).requires_grad_()
    pulls = []
    for name, factor in factors.items():
        value = factor * module.criterion.terms[name](mixed, batch["photo"])
        pulls.append(torch.autograd.grad(value, mixed)[0].norm().item())
    assert pulls == pytest.approx([pulls[0]] * 3, rel=1e-3)
    total, _, (output, target) = module.compare(batch)
    assert torch.equal(target, batch["photo"])
    total.backward()
    silent = [n for n, p in module.student.named_parameters() if p.grad is None]
    assert not silent
    assert output.shape == (2, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(module.eval().compare(batch)[2][1], batch["photo"])


def photos(folder: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    folder.mkdir()
    for number in range(count):
        noise = rng.integers(0, 255, (6, 7, 3), dtype=np.uint8)
        picture = Image.fromarray(noise).resize((90, 80), Image.Resampling.BICUBIC)
        picture.save(folder / f"{number}.png")


def test_terms_of_our_own_pictures_are_known_and_others_are_yours_to_say():
    ours = with_terms(settings("style_image=[swirl,glass]"))
    chain = {each.of: each.text for each in terms_of_run(ours).chain}
    assert chain["style picture swirl+glass"] == "MIT, as this project"
    mixed = settings("style_image=[swirl,mine.png]")
    assert with_terms(mixed) == mixed


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_a_run_from_photos_to_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    photos(tmp_path / "photos", 12)
    words = ["recipe=picture", "photos=photos", *QUICK, "data.crop_size=64", "run=mine"]
    words += ["trainer.val_every=2", "trainer.threads=1", "style_image=glass"]
    assert run(train, *words, "trainer.max_steps=2") == 0
    assert "loss.balance: factors content ×1, style ×" in capsys.readouterr().out
    assert run(train, *words, "trainer.max_steps=4") == 0
    said = capsys.readouterr().out
    assert "runs/mine: resumes at step 2" in said
    assert "validation at step 4: style " in said
    assert len([*Path("runs/mine/previews").glob("*.png")]) == 2
    with Path("runs/mine/metrics.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["val/photo_style"]]
    assert [row["step"] for row in rows] == ["2", "4"]
    assert rows[0]["val/photo_style"] == rows[1]["val/photo_style"]  # the photos stay as they are
    assert run(export, "run=mine", "exporter.size=64") == 0
    chain = terms_of(Path("runs/mine/export/student.onnx")).chain
    assert {each.of for each in chain} == {"style picture glass", "photos"}
    monkeypatch.chdir(tmp_path / "runs")  # the set that it learnt from is found from there
    assert run(eval_fid, "run=mine", "runs=.", "optimised=3", "bootstrap=0", "flicker=2") == 0
    scores = json.loads(Path("mine/eval/results.json").read_text())
    found = {name: row["value"] for name, row in scores["similarity"].items()}
    assert found["content, photo"] == 0 < found["content, student"]
    assert found["style, optimised"] < found["style, photo"]
    assert scores["pictures"] == 3  # held out of twelve
    assert scores["fid_missing"] is None
    assert Path("mine/eval/contact_sheet.png").is_file()


@pytest.mark.usefixtures("small")
def test_the_style_of_the_style_picture_is_its_own(tmp_path):
    said = settings("style_image=glass")
    torch.save({"loss_factors": {"style": 7.0}}, tmp_path / "any.ckpt")
    criterion = run_criterion(said, tmp_path / "any.ckpt")
    assert criterion.weights["style"] == 7 * said.loss.weights["style"]
    picture, photo = style_pictures(said)[0][None], torch.rand(1, 3, 512, 512)
    assert term_values(criterion, picture, photo)["style"] == pytest.approx(0, abs=1e-6)
    assert term_values(criterion, photo, photo)["style"] > 0.1
    assert term_values(criterion, photo, photo)["content"] == 0


def test_a_bad_style_picture_is_named_before_weights_are_sought(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISTILL_WEIGHTS", str(tmp_path))
    Path("style.png").write_bytes(b"words")
    assert run(train, "recipe=picture", "photos=photos", "style_image=style.png", *QUICK) == 1
    assert "style_image=style.png: not a picture" in capsys.readouterr().err


def test_it_is_not_compiled(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["recipe=picture", "photos=photos", "style_image=glass", "trainer.compile=true"]
    assert run(train, *words, *QUICK) == 1
    said = "error: trainer.compile=true: not with recipe=picture; leave it out\n"
    assert capsys.readouterr().err == said


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_minutes_are_steps_by_the_time_of_the_first(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    photos(tmp_path / "photos", 12)
    clock = iter(range(999))
    monkeypatch.setattr("distill_picture.picture_training.time.perf_counter", lambda: next(clock))
    said = settings("picture.minutes=2", "data.crop_size=64")
    assert with_length(said, Run(tmp_path / "runs/none"), 120).trainer.max_steps == 120
    assert "picture.minutes=2: 120 steps of 1.00 s" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_minutes_are_planned_again_and_more_of_them_go_on(tmp_path, monkeypatch):
    """By a clock on which each step takes a second, while the first ones seemed to take six."""
    monkeypatch.chdir(tmp_path)
    photos(tmp_path / "photos", 12)
    clock = iter(range(999))
    monkeypatch.setattr("distill_picture.pace.monotonic", lambda: next(clock))
    monkeypatch.setattr("distill_picture.picture_training.seconds_of_a_step", lambda _: 6.0)
    words = ["recipe=picture", "photos=photos", "style_image=glass", "run=mine", *QUICK]
    words += ["data.crop_size=64", "data.batch_size=2"]
    for minutes, steps in ((0.2, 12), (0.2, 12), (0.3, 18)):
        assert run(train, *words, f"picture.minutes={minutes}") == 0
        assert step_of(Path("runs/mine/checkpoints/last.ckpt")) == steps


def test_minutes_are_of_one_device(capsys):
    words = ["picture.minutes=2", "trainer=ddp", "trainer.devices=2"]
    with pytest.raises(DistillError, match=r"picture\.minutes=2: of one device"):
        train_minutes(settings(*words), Run(Path("runs/none")), True, 2)
