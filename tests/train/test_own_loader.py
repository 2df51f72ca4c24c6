"""Training on loaders of one's own: batches checked, steps counted, resumed, interrupted."""

import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import distill
from distill.config import compose
from distill.config.settings.training import Train
from distill.core.errors import DistillError
from distill.data.datamodule import LoaderData
from distill.train import recipes
from distill_drawings.toon import Toon

PHOTO = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
LEVELS = (PHOTO * 255).round().byte()
LAST = LEVELS.movedim(1, -1)
OWN: dict[str, Any] = {"encoder": {"weights": "none"}, "loss": "l1", "decoder": "residual"}


def batch_of(given: Any) -> dict[str, Any]:
    (found,) = LoaderData([given], []).first_batches(1)
    return found


@pytest.mark.parametrize(
    "given",
    [
        (PHOTO, 1 - PHOTO),
        [PHOTO.double(), 1 - PHOTO.double()],
        {"photo": PHOTO, "target": 1 - PHOTO, "name": ["a", "b"]},
    ],
)
def test_pairs_in_any_of_their_forms(given):
    found = batch_of(given)
    torch.testing.assert_close(found["photo"], PHOTO)
    torch.testing.assert_close(found["target"], 1 - PHOTO)
    named = found["name"] == ["a", "b"]
    assert named or (not isinstance(given, dict) and found["name"] == ["picture 0", "picture 1"])


def test_bytes_become_pictures_and_photos_may_come_alone():
    found = batch_of((LAST, 255 - LAST))
    torch.testing.assert_close(found["photo"], LEVELS / 255)
    torch.testing.assert_close(found["target"], 1 - LEVELS / 255)
    assert "target" not in batch_of(PHOTO)


def test_a_recipe_that_trains_by_itself_takes_no_loader():
    settings = compose.from_keywords("train", Train, {}, OWN)
    with pytest.raises(DistillError, match=r"recipe=mylab\.Plain: takes no DataLoader"):
        recipes.train(replace(settings, recipe="mylab.Plain"), LoaderData([PHOTO], [PHOTO]))


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ((PHOTO, 2 * PHOTO - 1), r"^a batch: target has values from -.* to .*, want \[0, 1\]"),
        ((255 * PHOTO, PHOTO), r"^a batch: photo has values from .* to 25.*, want \[0, 1\]"),
        ((PHOTO / 0, PHOTO), "photo has values from inf to inf|from nan to nan"),
        ((PHOTO[..., :60], PHOTO), r"^a batch: photo is Tensor \(2, 3, 64, 60\), want float .* 32"),
        ((PHOTO, PHOTO[..., :32]), r"has photo \(2, 3, 64, 64\), target \(2, 3, 64, 32\); want"),
        ((PHOTO, PHOTO[:1]), r"has photo \(2, 3, 64, 64\), target \(1, 3, 64, 64\); want"),
        ((LEVELS, PHOTO), r"photo is Tensor \(2, 64, 3, 64\), want"),
        ({"target": PHOTO}, "has target .*; want photos"),
        ({}, "^a batch: has nothing; want photos and as many targets"),
    ],
)
def test_another_batch_is_told(given, line):
    with pytest.raises(DistillError, match=line):
        batch_of(given)


@pytest.mark.parametrize(
    ("train", "val", "line"),
    [
        ([], [(PHOTO, PHOTO)], "train: the loader has no batch"),
        ([(PHOTO, PHOTO)], [], "val: the loader has no batch"),
        ([(PHOTO, PHOTO)], [(PHOTO, 2 * PHOTO)], "a batch: target has values from"),
    ],
)
def test_a_wrong_first_batch_leaves_no_run(here, train, val, line):
    with pytest.raises(DistillError, match=line):
        distill.train_student(train, val, run="own", trainer={"max_steps": 1}, **OWN)
    assert not Path("runs/own").exists()


@pytest.mark.slow
def test_the_loader_begins_again_and_a_run_resumes_and_measures(here):
    seen = []

    class Counted(TensorDataset):
        def __getitem__(self, index):
            seen.append(index)
            return super().__getitem__(index)

    pairs = DataLoader(Counted(PHOTO, 1 - PHOTO), batch_size=1)  # two batches a pass
    val = [(PHOTO, 1 - PHOTO)]
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    run = distill.train_student(pairs, val, run="own", trainer={"max_steps": 5}, **OWN)
    assert seen[:6] == [0, 0, 1, 0, 1, 0]  # the first is looked at before anything begins
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert torch.load(run.last, weights_only=True)["global_step"] == 5
    assert run.settings().data.kind == "loader"
    distill.train_student(pairs, val, run="own", trainer={"max_steps": 7}, **OWN)
    assert torch.load(run.last, weights_only=True)["global_step"] == 7
    measured = OWN | {"loss": "l1_sobel", "loss.balance": True, "trainer.max_steps": 1}
    run = distill.train_student(pairs, val, run="balanced", **measured)
    assert run.measured.is_file()


@pytest.mark.slow
def test_a_style_s_teacher_labels_photos_that_come_alone(here):
    steps = {"trainer": {"max_steps": 1}, "lr": 1e-9, "ema": 0}
    run = distill.train_student([PHOTO], [PHOTO], run="live", style="toon", **OWN, **steps)
    labelled = [(PHOTO, Toon()(PHOTO))]
    other = distill.train_student(labelled, labelled, run="labelled", **OWN, **steps)
    rows = [(each.folder / "metrics.csv").read_text().splitlines() for each in (run, other)]
    assert rows[0] == rows[1]
    with pytest.raises(DistillError, match="a photo has no target, and there is no teacher"):
        distill.train_student([PHOTO], [PHOTO], run="none", **OWN, **steps)


@pytest.mark.slow
def test_ctrl_c_saves_and_is_raised(here, signal_at):
    signal_at(2, signal.SIGINT)
    pairs = [(PHOTO, 1 - PHOTO)]
    with pytest.raises(KeyboardInterrupt, match="runs/own: stopped at step 2; run it again"):
        distill.train_student(pairs, pairs, run="own", trainer={"max_steps": 9}, **OWN)
    assert torch.load("runs/own/checkpoints/last.ckpt", weights_only=True)["global_step"] == 2


@pytest.mark.slow
def test_a_training_runs_in_a_thread_too(here):
    pairs, raised = [(PHOTO, 1 - PHOTO)], []

    def work() -> None:
        try:
            distill.train_student(pairs, pairs, run="own", trainer={"max_steps": 1}, **OWN)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not raised
    assert Path("runs/own/checkpoints/last.ckpt").is_file()
