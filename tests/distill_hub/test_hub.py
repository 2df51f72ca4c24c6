"""distill.hub as a user types it, a folder or a stand-in of the Hub on the other side."""

import json
import re
from pathlib import Path

import pytest
import torch
import yaml
from PIL import Image

from distill.models import network_file
from distill.prepare import __main__ as prepare
from distill.stylize import __main__ as stylize
from distill_hub import __main__ as hub
from support.commands import SMALL, go, run
from support.hub_stand_in import HubStandIn, as_typed
from support.students_on_file import distilled, settings_of_student

SET = "data/pairs/toon-photos-64-crop90"
CARD = ["card=true", "card.licence=CC BY 4.0", "card.source=https://example.org/photos"]


def prepared(*more: str) -> int:
    return run(prepare, "photos=photos", *SMALL, *more)


def files(root: Path) -> dict[str, bytes]:
    found = (p for p in root.rglob("*") if p.is_file())
    named = {p.relative_to(root).as_posix(): p.read_bytes() for p in found}
    return {name: content for name, content in named.items() if not name.startswith(".")}


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err.strip().splitlines()[-1]


@pytest.fixture
def student(here):
    """The file of a student, in the working folder."""
    path = here / "mine.safetensors"
    network_file.write_network(distilled(), network_file.description(settings_of_student()), path)
    return path


@pytest.mark.campaign
def test_the_card_of_a_set(here):
    assert prepared(*CARD) == 0
    root = here / SET
    _, head, body = (root / "README.md").read_text().split("---\n", 2)
    said = yaml.safe_load(head)
    assert said["license"] == "cc-by-4.0"  # the teacher's is this project's
    assert said["task_categories"] == ["image-to-image"]
    assert said["size_categories"] == ["n<1K"]
    sides = {s["split"]: s["path"] for s in said["configs"][0]["data_files"]}
    assert sides == {"train": "train/**", "validation": "val/**", "test": "test/**"}
    for side in ("train", "val", "test"):
        count = len(list((root / side / "photo").iterdir()))
        assert f"| {side} | {count} |" in body
    assert "style=toon style.resolution=64 data.root=DIR" in body
    assert "- from: https://example.org/photos" in body
    assert "| photos | yes | no | yes | CC BY 4.0 (says the publisher) (stated 2" in body
    assert json.loads((root / "dataset.json").read_text())["recipe"]["teacher"] in body
    assert str(here) not in head + body
    with Image.open(root / "sheet.jpg") as sheet:
        assert sheet.format == "JPEG"
        assert sheet.width > 2 * 64
    before = (root / "README.md").read_bytes()
    assert prepared(*CARD) == 0
    assert (root / "README.md").read_bytes() == before


def test_terms_that_nobody_named_are_other(here):
    assert prepared("card=true") == 0
    text = (here / SET / "README.md").read_text()
    assert "license: other" in text
    assert "| photos | unknown | unknown | unknown | not said |" in text
    assert "| **the set** | unknown |" in text


def test_a_card_of_sketches(here):
    assert prepared("recipe=pix2pix", "sketch.size=64", *CARD) == 0
    text = (here / "data/sketches/photos-64/README.md").read_text()
    assert "`SIDE/A/NAME.png` is the input, `SIDE/B/NAME.png` of the same name the target" in text
    assert "distill train recipe=pix2pix data.root=DIR" in text
    assert "- sketch.outline: canny" in text
    assert "teacher" not in text


@pytest.mark.slow
def test_a_set_goes_to_a_folder_and_comes_back(here, capsys):
    assert prepared() == 0
    push = [f"data.root={SET}", "repo=./shared", "push"]
    assert run(hub, *push) == 1
    assert "has no README.md to say what it is" in last_line(capsys)
    assert prepared(*CARD) == 0
    assert run(hub, *push) == 0
    shared, own = files(here / "shared"), files(here / SET)
    assert own.keys() - shared.keys() == {"skipped.tsv", "published.txt"}
    assert {n for n in shared if shared[n] != own.get(n)} == {"dataset.json", "sha256sums.txt"}
    assert not [name for name in shared if str(here).encode() in shared[name]]
    assert json.loads(shared["dataset.json"])["recipe"]["photos"] == "photos"
    capsys.readouterr()
    assert run(hub, *push) == 0
    assert f"{len(shared)} files, 0 of them new" in capsys.readouterr().out

    pull = ["pull", "repo=./shared", "data.root=got"]
    assert run(hub, *pull) == 0
    assert files(here / "got") == shared
    (here / "got/README.md").unlink()
    capsys.readouterr()
    assert run(hub, *pull) == 0
    assert "1 of them new" in capsys.readouterr().out
    assert files(here / "got") == shared
    # It trains, without the photos, and is pushed again as the same set.
    assert go("data.root=got", "photos=nowhere", "run=again", "trainer.max_steps=1") == 0
    assert run(hub, "push", "data.root=got", "repo=./shared") == 0

    picture = next((here / "got/train/stylized").iterdir())
    picture.write_bytes(b"damaged")
    assert run(hub, *pull) == 1
    assert f"{picture.name} is here with other content" in last_line(capsys)
    assert run(hub, *pull, "replace=true") == 0
    assert files(here / "got").items() >= shared.items()


def test_a_set_that_is_none(here, capsys):
    assert run(hub, "push", "data.root=photos", "repo=./shared") == 1
    assert "data.root=photos: no complete set of distill.prepare" in last_line(capsys)
    assert run(hub, "pull", "repo=./photos", "data.root=got") == 1
    assert "repo=./photos: no set that was pushed to its end" in last_line(capsys)
    assert not (here / "got").exists()


@pytest.mark.slow
def test_a_student_there_and_back(student, capsys):
    here = student.parent
    assert run(hub, "push", "model=mine.onnx", "repo=./shared") == 1
    assert "mine.onnx: a student is pushed from .safetensors" in last_line(capsys)
    assert run(hub, "push", "model=mine.safetensors", "repo=./shared") == 0
    shared = files(here / "shared")
    assert sorted(shared) == ["README.md", "config.json", "model.safetensors", "sheet.jpg"]
    assert shared["model.safetensors"] == student.read_bytes()
    with Image.open(here / "shared/sheet.jpg") as sheet:
        assert sheet.width > 2 * 256
    for _ in range(2):
        assert run(hub, "pull", "repo=./shared", "model=got.safetensors") == 0
        assert (here / "got.safetensors").read_bytes() == student.read_bytes()
    photo = next((here / "photos").iterdir())
    assert run(stylize, str(photo), "model=got.safetensors", "-o", "drawn.png") == 0
    capsys.readouterr()

    other = network_file.description(settings_of_student())
    network_file.write_network(distilled(seed=1), other, student)
    assert run(hub, "push", "model=mine.safetensors", "repo=./shared") == 1
    assert "are there with other content; replace=true" in last_line(capsys)
    assert run(hub, "push", "model=mine.safetensors", "repo=./shared", "replace=true") == 0
    assert run(hub, "pull", "repo=./shared", "model=got.safetensors") == 1
    assert "model=got.safetensors: exists with other content" in last_line(capsys)
    (here / "shared/model.safetensors").write_bytes(b"cut")
    assert run(hub, "pull", "repo=./shared", "model=new.safetensors") == 1
    assert "damaged, or not a network of distill.export" in last_line(capsys)
    assert not (here / "new.safetensors").exists()


def test_pushed_to_the_hub_to_the_last_step_before_a_network(student, monkeypatch):
    pytest.importorskip("huggingface_hub")
    here = student.parent
    api = HubStandIn(here / "the hub")
    asked = as_typed(api)
    monkeypatch.setattr("huggingface_hub.HfApi", lambda: asked)
    words = ["model=mine.safetensors", "repo=me/mine"]
    assert run(hub, "push", *words, "private=false") == 0
    assert api.made == {"me/mine": ("model", False)}
    assert api.commits == [["README.md", "config.json", "sheet.jpg"], ["model.safetensors"]]
    assert b'from_pretrained("me/mine")' in (here / "the hub/README.md").read_bytes()
    assert run(hub, "pull", "repo=me/mine", "model=got.safetensors") == 0
    back, _ = network_file.read_network_file(here / "got.safetensors")
    ours = distilled().state_dict()
    assert all(torch.equal(value, ours[name]) for name, value in back.state_dict().items())


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "want push or pull, got nothing"),
        (["send"], "want push or pull, got send"),
        (["push", "pull"], "want push or pull, got push pull"),
        (["push", "run=a"], "repo: missing; repo=USER/NAME on the Hub"),
        (["push", "run=a", "repo=./x"], "runs/a: no such run"),
        (["push", "run=a", "model=b", "repo=./x"], "run=a and model=b: name one student"),
        (["pull", "repo=./x"], "pull: no destination; data.root=DIR for a set"),
        (["pull", "repo=./x", "model=a.onnx"], "model=a.onnx: a student is pulled as .safetensors"),
        (["pull", "repo=./x", "model=a.safetensors"], "repo=./x: no student is there"),
        (["push", "repo=one", "run=a"], "repo=one: USER/NAME on the Hub, or a folder"),
        (["push", "model=gone.ckpt", "repo=./x"], "gone.ckpt: no such file"),
    ],
)
def test_what_is_wrong_ends_in_one_line(words, line, here, capsys):
    assert run(hub, *words) == 1
    error = capsys.readouterr().err
    assert re.fullmatch(rf"error: {re.escape(line)}.*\n", error), error
    assert sorted(p.name for p in here.iterdir()) == ["photos"]
