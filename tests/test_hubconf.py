"""torch.hub.load on this checkout: the students of the package, files of one's own, teachers."""

from pathlib import Path
from typing import Any

import pytest
import torch

from distill.core.errors import DistillError
from distill.models import network_file
from distill_drawings.toon import Toon
from support.students_on_file import distilled, settings_of_student

ROOT = Path(__file__).parents[1]
PHOTO = torch.rand(1, 3, 256, 256, generator=torch.Generator().manual_seed(3))


def load(name: str, **words: Any) -> torch.nn.Module:
    return torch.hub.load(str(ROOT), name, source="local", **words)


def test_gradients_reach_the_photo_and_the_weights():
    student, photo = load("student"), PHOTO[..., :64, :64].clone().requires_grad_()
    student(photo).mean().backward()
    assert photo.grad.abs().max() > 0
    assert all(p.grad is not None for p in student.parameters())


def test_a_file_of_ones_own(tmp_path):
    path = tmp_path / "s.safetensors"
    network_file.write_network(distilled(), network_file.description(settings_of_student()), path)
    student, expected = load("student", file=str(path)), distilled()
    with torch.inference_mode():
        assert torch.equal(student(PHOTO), expected(PHOTO))


def test_untrained_is_the_student_of_a_training(monkeypatch):
    student = load("student", style="paprika", pretrained=False)  # none of it in the package
    assert any(isinstance(m, torch.nn.BatchNorm2d) for m in student.modules())
    assert student.description.style.name == "paprika"
    photo = PHOTO[..., :64, :64]
    with torch.inference_mode():  # `detail` starts at the photo
        assert (student(photo) - torch.sigmoid(4 * photo - 2)).abs().mean() < 0.1


def test_the_teacher_is_frozen():
    teacher = load("teacher", style="toon")
    with torch.inference_mode():
        assert torch.equal(teacher(PHOTO), Toon()(PHOTO))
    assert not teacher.train().training
    assert not any(p.requires_grad for p in teacher.parameters())


def test_real_weights_of_a_teacher(assets):
    teacher = load("teacher", style="hayao", weights=str(assets / "teachers/animegan2_hayao.pt"))
    with torch.inference_mode():
        drawn = teacher(PHOTO[..., :64, :64])
    assert drawn.shape == (1, 3, 64, 64)
    assert 0 <= drawn.min() < drawn.max() <= 1


@pytest.mark.parametrize(
    ("name", "words", "line"),
    [
        (
            "student",
            {"style": "paprika"},
            r"no student of this package \(there are: comic, ",
        ),
        ("student", {"style": "papriko", "pretrained": False}, "no such choice; did you mean"),
        ("student", {"file": "gone.safetensors"}, "gone.safetensors: no such file"),
        ("teacher", {"style": "hayao", "weights": "gone.pt"}, "style.weights=gone.pt: no such fil"),
    ],
)
def test_what_is_not_there_ends_in_one_line(name, words, line):
    with pytest.raises(DistillError, match=line):
        load(name, **words)
