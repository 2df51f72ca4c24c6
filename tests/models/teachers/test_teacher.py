"""What a teacher gives is checked, whichever teacher it is, before anything is made of it."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from distill.config import compose
from distill.config.settings.training import Prepare
from distill.core.errors import DistillError
from distill.data.photos import find_photos
from distill.models.build import load_teacher
from distill.models.teachers.animegan2 import AnimeGANv2
from distill.models.teachers.teacher import BadPicture, Teacher
from support.labelling import MANIFEST, add, make

PHOTOS = torch.rand(3, 3, 8, 12, generator=torch.Generator().manual_seed(0))
NAN, INF = float("nan"), float("inf")


class Gives(Teacher):
    """What a function makes of the photos."""

    origin = "net.file"

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, photo: Tensor) -> Tensor:
        return self.function(photo)


def spoilt(value: float) -> Callable[[Tensor], Tensor]:
    """One pixel of the second picture has this value."""
    return lambda photos: photos.index_put((torch.tensor(1),) * 4, torch.tensor(value))


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (spoilt(NAN), "net.file: gave values that are not finite (NaN or infinite)"),
        (spoilt(INF), "net.file: gave values that are not finite (NaN or infinite)"),
        (spoilt(-INF), "net.file: gave values that are not finite (NaN or infinite)"),
        (spoilt(1.25), "net.file: gave values from "),
        (spoilt(-0.25), "net.file: gave values from -0.25 to "),
    ],
)
def test_one_wrong_pixel_is_told_with_its_picture(function, said):
    with pytest.raises(BadPicture) as error:
        Gives(function)(PHOTOS)
    assert str(error.value).startswith(said)
    assert error.value.index == 1


@pytest.mark.parametrize(
    "function",
    [lambda p: p[..., ::2], lambda p: p[:1], lambda p: p[:, :2], lambda p: p.movedim(1, 3)],
)
def test_another_size_is_no_picture(function):
    with pytest.raises(BadPicture, match=r"^net\.file: gave \(.*\), want \(3, 3, 8, 12\)$"):
        Gives(function)(PHOTOS)


def test_arithmetic_may_leave_the_range_by_a_little():
    assert torch.equal(Gives(lambda p: p * 0 + 1.0005)(PHOTOS), torch.ones_like(PHOTOS))


def test_weights_that_hold_a_nan_are_told(tmp_path):
    teacher = AnimeGANv2()
    nn.init.constant_(teacher.out_layer[0].weight, NAN)
    with pytest.raises(BadPicture, match=r"^the teacher: gave values that are not finite"):
        teacher(torch.rand(1, 3, 32, 32))


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (torch.ones_like, "gave one colour all over for 3 photos: values from 1 to 1, want"),
        (lambda p: p.mean((2, 3), keepdim=True).expand_as(p), "gave one colour all over"),
        (lambda p: p[:1].expand_as(p), "gave the same picture for 3 photos"),
    ],
)
def test_a_network_that_does_not_look_at_its_photos(function, said):
    teacher = Gives(function)
    with pytest.raises(BadPicture) as error:
        teacher.check_together(teacher(PHOTOS), PHOTOS)
    assert str(error.value).startswith(f"net.file: {said}")


@pytest.mark.parametrize(
    "photos",
    [PHOTOS[:1], PHOTOS[:1].repeat(3, 1, 1, 1), torch.full((3, 3, 8, 8), 0.5)],
    ids=["one alone", "copies", "of one colour"],
)
def test_photos_that_may_all_give_white(photos):
    teacher = Gives(lambda p: (p * 0 + 1) if len(p) == 1 else p.round())
    teacher.check_together(teacher(photos), photos)


def test_labelling_names_the_photo_and_keeps_nothing_of_it(tmp_path):
    """Whatever else is in its batch: of the last photo of five the upper half is black."""
    add(tmp_path / "photos", *range(4), change=lambda im: im.point(lambda v: max(v, 8)))
    add(tmp_path / "photos", 4, change=lambda im: im.point(lambda v: 0))
    teacher = Gives(lambda p: torch.where(p.amax((1, 2, 3), keepdim=True) > 0, p, NAN))
    for batch_size in (1, 2, 8):
        root = tmp_path / f"set {batch_size}"
        with pytest.raises(DistillError, match=r"not finite.*photo '4\.png'"):
            make(tmp_path / "photos", root, teacher=teacher, batch_size=batch_size)
        assert not [*root.glob("*/*/4-*.png")]
        assert not (root / "teacher.json").exists()


def test_labelling_refuses_one_colour_before_it_writes_a_pair(tmp_path):
    add(tmp_path / "photos", *range(5))
    assert len(find_photos(tmp_path / "photos")) == 5
    with pytest.raises(DistillError, match="gave one colour all over for 5 photos"):
        make(tmp_path / "photos", tmp_path / "set", MANIFEST, Gives(torch.ones_like))
    assert not [*(tmp_path / "set").glob("*/*/*.png")]


@pytest.mark.parametrize("name", ["animegan2", "onnx"])
def test_a_teacher_without_its_weights_labels_nothing(name):
    settings = compose.load("prepare", ["style=toon", "photos=p", f"teacher={name}"], Prepare)
    with pytest.raises(DistillError, match=r"^style\.weights: missing; .* needs them"):
        load_teacher(settings.style, settings.teacher)
