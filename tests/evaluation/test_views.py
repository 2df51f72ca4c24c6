"""Off-centre views, and what a student that knows one crop by heart scores on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from distill.core.images import to_uint8
from distill.data.labelled.manifest import Manifest, write_manifest
from distill.evaluation import set_teacher
from distill.evaluation.fidelity import scores as scoring
from distill.evaluation.fidelity.heldout_set import FidelitySet
from distill.evaluation.fidelity.views import KINDS, SHIFTS, drawn, first_of_each, views_of
from distill.models.teachers.teacher import Teacher

SIDE = 64


class Negative(Teacher):
    """Draws 1 − photo, and counts the pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0
        self.freeze()

    def forward(self, photo: Tensor) -> Tensor:
        self.seen += len(photo)
        return 1 - photo


def photos(count: int) -> Tensor:
    coarse = torch.rand(count, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    return to_uint8(nn.functional.interpolate(coarse, SIDE, mode="bilinear"))


def held(count: int, root: Path = Path()) -> FidelitySet:
    """Photos of two folders in turn, and their negatives."""
    photo = photos(count)
    who = [(("a", "b")[i % 2], f"person{i}") for i in range(count)]
    files = [f"{i}.png" for i in range(count)]
    return FidelitySet(root, files, who, photo, 255 - photo, [None] * count)


@pytest.mark.parametrize(("number", "way"), [(0, (0, 1)), (1, (1, 0)), (2, (0, -1)), (7, (-1, 0))])
def test_a_shifted_view_has_the_photo_moved_that_way(number: int, way: tuple[int, int]) -> None:
    photo = photos(1)[0]
    made = views_of(photo, number, "it")
    assert made.shape == (len(KINDS), 3, SIDE, SIDE)
    inner = np.s_[:, 16:-16, 16:-16]
    for view, by in zip(made, SHIFTS, strict=False):
        moved = photo.roll((by * way[0], by * way[1]), (1, 2))
        assert torch.equal(view[inner], moved[inner])


def test_zoomed_and_cut_views_of_a_ramp() -> None:
    """A ramp of 3 a pixel is one of 3/zoom; a random crop one between 0.6 and 0.95 of it."""
    ramp = (3 * torch.arange(SIDE)).byte().expand(3, SIDE, SIDE)
    made = dict(zip(KINDS, views_of(ramp, 0, "it").double(), strict=True))

    def slope(view: Tensor) -> float:
        return float((view[..., -10] - view[..., 10]).mean() / (SIDE - 20))

    assert slope(made["zoom 1.1"]) == pytest.approx(3 * round(SIDE / 1.1) / SIDE, abs=0.05)
    assert slope(made["zoom 1.25"]) == pytest.approx(3 * round(SIDE / 1.25) / SIDE, abs=0.05)
    assert 3 * 0.58 < slope(made["random crop"]) < 3 * 0.97
    middle = float(ramp.double().mean())
    assert made["zoom 1.25"].mean() == pytest.approx(middle, abs=1.6)


def test_random_crops_differ_by_name_and_stay() -> None:
    photo = photos(1)[0]
    one, again, other = (views_of(photo, 0, name)[-1] for name in ("a", "a", "b"))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_so_many_of_each_folder() -> None:
    assert first_of_each(held(7), 2).tolist() == [0, 1, 2, 3]
    assert first_of_each(held(3), 2).tolist() == [0, 1, 2]
    assert first_of_each(held(1), 2).tolist() == [0]
    assert first_of_each(held(7), 0).tolist() == []


def test_the_teacher_draws_each_view_once(tmp_path: Path) -> None:
    teacher, pictures = Negative(), held(5)
    first = drawn(pictures, 2, teacher, tmp_path / "views")
    assert teacher.seen == 4 * len(KINDS)
    assert torch.equal(first.teacher, 255 - first.photo)
    again = drawn(pictures, 2, teacher, tmp_path / "views")
    assert teacher.seen == 4 * len(KINDS)
    assert torch.equal(again.teacher, first.teacher)
    more = drawn(pictures, 3, teacher, tmp_path / "views")
    assert teacher.seen == 5 * len(KINDS)
    next((tmp_path / "views").iterdir()).write_bytes(b"damaged")
    assert torch.equal(drawn(pictures, 3, teacher, tmp_path / "views").teacher, more.teacher)
    assert teacher.seen == 6 * len(KINDS)


def test_off_centre_against_centre(tmp_path: Path) -> None:
    """A student 51 levels off everywhere but at the centre, where it is 5.1 off: 20 dB less."""
    pictures = held(4)
    seen = drawn(pictures, 1, Negative(), tmp_path)
    for view in (seen.photo, seen.teacher):
        view.fill_(100)

    class Off(nn.Module):
        def forward(self, photo: Tensor) -> Tensor:
            return photo + 51 / 255

    centre = np.full(4, 20 * np.log10(255 / 5.1))
    found = scoring.off_centre(Off(), seen, centre, "it")
    assert set(found) == {
        scoring.OFF_CENTRE, scoring.AGAINST, *(f"PSNR (dB), {kind}" for kind in KINDS)
    }  # fmt: skip
    psnr = 20 * np.log10(5)
    nothing = float("nan")
    assert found[scoring.OFF_CENTRE].tolist() == pytest.approx(
        [psnr, psnr, nothing, nothing], abs=1e-4, nan_ok=True
    )
    assert found[scoring.AGAINST][:2].tolist() == pytest.approx([-20, -20], abs=1e-4)


def test_only_the_teacher_that_drew_the_set(tmp_path: Path) -> None:
    """By its fingerprint: toon is in the package, so at hand everywhere."""
    assert set_teacher.style_teacher(tmp_path) is None  # no set
    settings = set_teacher.compose.load("prepare", ["style=toon"], set_teacher.Prepare)
    teacher = set_teacher.build.load_teacher(settings.style, settings.teacher)
    write_manifest(tmp_path, Manifest("photos", "toon", teacher.fingerprint()), {})
    assert set_teacher.style_teacher(tmp_path) is not None
    write_manifest(tmp_path, Manifest("photos", "toon", "another"), {})
    assert set_teacher.style_teacher(tmp_path) is None
    write_manifest(tmp_path, Manifest("photos", "none of ours", "another"), {})
    assert set_teacher.style_teacher(tmp_path) is None
