"""Networks of the user's own are run once where they are built; what is wrong is one line."""

import re

import pytest
import torch

from distill.config.settings.training import StyleSettings
from distill.core.errors import DistillError
from distill.models.build import build_student, load_teacher
from support.refusals import refusal

PARTS = "support.own_parts"
ENCODER = {"_target_": "distill.models.students.encoder.MobileNetV2Encoder", "weights": "none"}
STYLE = StyleSettings(
    name="own", resolution=64, weights=None, file=None, url=None, sha256=None, git_blob=None,
    licence="", source="",
)  # fmt: skip


def student(name, encoder=ENCODER, channels=3):
    return build_student(encoder, {"_target_": f"{PARTS}.{name}"}, channels)


def teacher(name, **arguments):
    return load_teacher(STYLE, {"_target_": f"{PARTS}.{name}", **arguments})


def test_a_right_decoder_and_a_right_teacher_leave_no_trace_of_their_trial():
    before = torch.random.get_rng_state()
    torch.manual_seed(1)
    made = student("Half", channels=4)
    now = torch.rand(1)
    torch.manual_seed(1)
    build_student(ENCODER, {"_target_": f"{PARTS}.Half"}, 4)
    assert torch.equal(torch.rand(1), now)
    assert made.training
    norms = [m for m in made.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    assert all(int(norm.num_batches_tracked) == 0 for norm in norms)
    drawn = teacher("Dark")
    assert not drawn.training
    assert torch.equal(drawn(torch.ones(1, 3, 8, 8)), torch.full((1, 3, 8, 8), 0.5))
    torch.random.set_rng_state(before)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Small", "gave (1, 3, 32, 32) float32, want (1, 3, 64, 64) float32, for (1, 3, 64, 64)"),
        ("Square", "gave (1, 3, 64, 64) float32, want (1, 3, 64, 96) float32"),
        ("Double", "gave (1, 3, 64, 64) float64, want (1, 3, 64, 64) float32"),
        ("Wide", "gave values from "),
        ("NotFinite", "gave values that are not finite"),
        (
            "Failing",
            "a call with (1, 3, 64, 64) float32 raised RuntimeError (no such layer in",
        ),
        ("Unbuilt", "its constructor raised RuntimeError (cannot be made, /"),
        ("Plain", "its constructor raised TypeError ("),
        ("Levels", "is no Module; name a subclass of torch.nn.modules.module.Module"),
        ("half", "its constructor raised TypeError ("),
        ("gone", "cannot be imported"),
    ],
)
def test_a_wrong_decoder(name, said):
    assert refusal(student, name).startswith(f"decoder.build._target_={PARTS}.{name}: {said}")


def test_an_encoder_that_does_not_say_what_it_gives():
    with pytest.raises(DistillError, match=re.escape("encoder: Plain has no `channels`, a list")):
        student("Half", {"_target_": f"{PARTS}.Plain"})


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("Dark", {"factor": 2.0}, "values from 0.00"),
        ("Cropping", {}, "gave (1, 3, 32, 32)"),
        ("Half", {}, "is no Teacher; name a subclass of distill.models.teachers.teacher.Teacher"),
    ],
)
def test_a_wrong_teacher(name, arguments, said):
    assert said in refusal(teacher, name, **arguments)
