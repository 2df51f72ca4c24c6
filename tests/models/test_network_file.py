"""A network in one safetensors file: back bit for bit, and nothing of a foreign file runs."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from distill.config.settings.training import Training
from distill.core.errors import DistillError
from distill.models import checkpoint, network_file
from distill.models.teachers.trained_run import CheckpointTeacher
from support.gan_runs import RESNET, SIDE, STUDENT, UNET, built, settings
from support.students_on_file import STYLE, distilled, settings_of_student

DECODER = {"name": "detail", "profile": "strict", "without": []}
PHOTO = torch.rand(2, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(3))


def said(path: Path) -> dict[str, Any]:
    with safe_open(path, framework="pt") as file:
        return json.loads(file.metadata()["distill"])


def written(path: Path, network: torch.nn.Module, trained: Training) -> Path:
    network_file.write_network(network, network_file.description(trained), path)
    return path


def check_same(one: torch.nn.Module, other: torch.nn.Module) -> None:
    ours, theirs = one.state_dict(), other.state_dict()
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        assert value.dtype == theirs[name].dtype
        assert torch.equal(value, theirs[name]), name
    with torch.inference_mode():
        assert torch.equal(one(PHOTO), other(PHOTO))


@pytest.mark.parametrize("channels", [3, 4])
def test_a_student_comes_back_bit_for_bit(tmp_path, channels):
    network = distilled(channels)
    path = written(tmp_path / "s.safetensors", network, settings_of_student(channels=channels))
    back, found = checkpoint.read_network(path)
    assert not back.training
    check_same(back, network)
    assert found.channels == channels
    started, folded = checkpoint.student_to_start_from(path)
    check_same(started, network)
    assert not folded


@pytest.mark.parametrize("node", [UNET, RESNET, STUDENT], ids=["unet", "resnet", "student"])
def test_generators_come_back_too_and_teach(tmp_path, node):
    network = built(node)
    path = written(tmp_path / "g.safetensors", network, settings("pix2pix", node))
    check_same(network_file.read_network_file(path)[0], network)
    with torch.inference_mode():
        torch.testing.assert_close(
            CheckpointTeacher(str(path))(PHOTO), network(PHOTO).clamp(0, 1), rtol=0, atol=0
        )
    with pytest.raises(DistillError, match="recipe=pix2pix, expected a student"):
        checkpoint.student_to_start_from(path)


def test_the_same_network_is_the_same_bytes(tmp_path):
    network = distilled()
    one, two = (
        written(tmp_path / f"{n}.safetensors", network, settings_of_student()) for n in "ab"
    )
    assert one.read_bytes() == two.read_bytes()


def test_what_the_file_says_and_what_it_keeps_to_itself(tmp_path):
    path = written(tmp_path / "s.safetensors", distilled(), settings_of_student())
    found = said(path)
    assert {key: found[key] for key in ("recipe", "direction", "size", "channels", "form")} == {
        "recipe": "distill", "direction": "AtoB", "size": SIDE, "channels": 3, "form": 1,
    }  # fmt: skip
    assert found["style"]["licence"] == "mine alone"
    assert found["style"]["file"] == "heavy.pt"  # what it was, not what is published
    assert found["style"]["sha256"] is None
    assert found["teacher"]["_target_"].endswith("CheckpointTeacher")
    assert found["colours_at"] is None
    assert b"/home/me" not in path.read_bytes()
    assert b"secret" not in path.read_bytes()


def test_colours_follow_the_side_of_a_teacher_that_normalises():
    node = {"_target_": "distill.models.teachers.animegan2.AnimeGANv2"}
    assert network_file.description(settings_of_student(teacher=node)).colours_at == SIDE
    assert network_file.description(settings_of_student(teacher=None)).teacher is None


def problem(path: Path) -> str:
    with pytest.raises(DistillError) as error:
        network_file.read_network_file(path)
    assert str(error.value).startswith(f"{path}: ")
    return str(error.value)


def changed(path: Path, whole: Path, **values: Any) -> Path:
    """The file of the student where these values stand for what it says, with one weight."""
    save_file({"weight": torch.ones(2)}, path, {"distill": json.dumps(said(whole) | values)})
    return path


def test_foreign_and_damaged_files_end_in_one_line(tmp_path):
    path = tmp_path / "x.safetensors"
    assert "no such file" in problem(path)
    path.write_bytes(b"")
    assert "damaged, or not a network of distill.export" in problem(path)
    student = written(tmp_path / "w.safetensors", distilled(), settings_of_student())
    whole = student.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "damaged" in problem(path)
    save_file({"weight": torch.ones(2)}, path)
    assert "weights without what builds their network" in problem(path)
    save_file({"weight": torch.ones(2)}, path, {"distill": "{cut"})
    assert "damaged" in problem(path)
    save_file({"weight": torch.ones(2)}, path, {"distill": "[]"})
    assert "damaged" in problem(path)
    assert "made by distill 9.9; update this one" in problem(
        changed(path, student, form=2, version="9.9")
    )
    assert "recipe=dream: unknown" in problem(changed(path, student, recipe="dream"))
    assert "does not fit Student: " in problem(changed(path, student, channels=4))
    for name in ("size", "colours_at"):
        for value in ("64", 8, True):
            assert f": {name}={value!r}: " in problem(changed(path, student, **{name: value}))
    for name, value in (("resolution", "x"), ("licence", ["MIT"])):
        style = STYLE | {name: value}
        assert f": style.{name}={value!r}: " in problem(changed(path, student, style=style))
    for teacher in ("toon", [1]):
        assert f": teacher={teacher!r}: " in problem(changed(path, student, teacher=teacher))
    assert ": folded=0: " in problem(changed(path, student, folded=0))
    header = struct.pack("<Q", 1 << 60)
    path.write_bytes(header + whole[8:])
    assert "damaged" in problem(path)


@pytest.mark.parametrize("part", ["encoder", "decoder"])
def test_no_class_but_ours_is_built_from_a_file(tmp_path, monkeypatch, part):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "evil.py").write_text("open('owned', 'w')")
    evil: dict[str, Any] = {"_target_": "evil.Thing"}
    values = {"decoder": {"decoder": DECODER | {"build": evil}}, "encoder": {"encoder": evil}}[part]
    student = written(tmp_path / "s.safetensors", distilled(), settings_of_student())
    line = problem(changed(tmp_path / "x.safetensors", student, **values))
    assert "refused; only classes of distill and of plug-ins" in line
    assert not (tmp_path / "owned").exists()


def test_a_network_alone_is_no_run(tmp_path):
    path = written(tmp_path / "s.safetensors", distilled(), settings_of_student())
    for read in (checkpoint.load_network, checkpoint.load_student):
        with pytest.raises(
            DistillError, match="a network alone; this also needs its run's settings"
        ):
            read(path)
    with pytest.raises(DistillError, match=r"direction=BtoA: .* has one direction"):
        checkpoint.read_network(path, "BtoA")
