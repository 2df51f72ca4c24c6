"""Teachers that are bent by a known amount, and those that are not."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from distill.config import compose
from distill.config.settings.training import Prepare
from distill.core.errors import DistillError
from distill.data.manifest import write_manifest
from distill.data.photos import Photo, find_photos
from distill.metrics.line_figures import displacement, typical
from distill.models.build import load_teacher
from distill.models.teachers.animegan2 import AnimeGANv2
from distill.models.teachers.teacher import Teacher
from distill.prepare import labelling
from distill.prepare.teacher_check import check_teacher, choose, furthest, some_squares
from support.labelling import MANIFEST, make


@pytest.fixture
def squares():
    """(8, 3, 256, 256) in [0, 1]: noise without what is finer than four pixels."""
    noise = torch.rand(8, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    return nn.functional.interpolate(noise, scale_factor=4, mode="bicubic").clamp(0, 1)


def textures(folder: Path, count: int) -> Path:
    """Photos in which every tile shows something."""
    folder.mkdir(parents=True)
    for i in range(count):
        rough = torch.randint(
            256, (24, 24, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(i)
        )
        whole = Image.fromarray(rough.numpy()).resize((128, 128), Image.Resampling.BICUBIC)
        whole.save(folder / f"texture {i}.png")
    return folder


class Moves(Teacher):
    """Draws everything 2 pixels further right."""

    def settings(self) -> str:
        return "two pixels right"

    def forward(self, photo: Tensor) -> Tensor:
        return photo.roll(2, -1)


def test_a_teacher_that_draws_in_place(squares):
    found = check_teacher(lambda photo: 1 - photo / 2, squares)
    assert found.displacement == pytest.approx(0, abs=0.1)
    assert found.mirror == pytest.approx(100)
    assert not found.bent


def test_a_teacher_that_moves_what_it_draws(squares):
    found = check_teacher(Moves(), squares)
    assert found.displacement == pytest.approx(2, abs=0.1)
    assert found.mirror < 25  # four pixels apart, once mirrored back
    assert found.bent
    assert "2.0" in str(found)


def test_transparency_is_put_over_white(squares):
    found = check_teacher(
        lambda photo: torch.cat([photo, torch.ones_like(photo[:, :1])], 1), squares
    )
    assert found.displacement == pytest.approx(0, abs=0.1)


def test_rows_and_columns_are_the_places_where_a_shift_is_sought():
    """A shift that grows to the side is a median of its column, whatever single tiles say."""
    found = torch.zeros(5, 4, 4, 2)
    found[..., 1] = torch.tensor([0.0, 1.0, 2.0, 3.0])
    found[0, 0, 0] = 9.0
    assert furthest(found) == 3.0
    found[:, :, 2] = float("nan")
    assert furthest(found) is None


@pytest.mark.slow
def test_of_several_the_one_in_place_is_chosen(squares):
    kept, found = choose({"moved": Moves(), "there": lambda photo: photo}, squares)
    assert kept == "there"
    assert found["moved"].displacement == pytest.approx(2, abs=0.1)


def test_a_set_says_once_how_its_teacher_lies(tmp_path, capsys):
    photos, root = textures(tmp_path / "photos", 8), tmp_path / "set"
    large = replace(MANIFEST, size=128)
    make(photos, root, manifest=large, teacher=Moves())
    said = capsys.readouterr().out
    assert "2.0" in said
    assert "warning" in said
    kept = json.loads((root / "teacher.json").read_text())
    assert kept["displacement_px"] == pytest.approx(2, abs=0.1)
    assert kept["settings"] == "two pixels right"
    make(photos, root, manifest=large, teacher=Moves())
    assert "off the photos" not in capsys.readouterr().out


def test_a_teacher_in_place_is_not_warned_of(tmp_path, capsys):
    make(textures(tmp_path / "photos", 8), tmp_path / "set")
    said = capsys.readouterr().out
    assert "off the photos" in said
    assert "warning" not in said


def test_too_few_photos_say_nothing(tmp_path):
    photos = find_photos(textures(tmp_path / "photos", 3))
    assert some_squares(photos, 64, 1.0) is None
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no picture")
    assert some_squares([*photos, Photo(broken, "broken.png")], 64, 1.0) is None


def settings_of(photos: Path, root: Path, *more: str) -> Prepare:
    words = [f"photos={photos}", f"data.root={root}", "teacher=animegan2", "style.resolution=64"]
    return compose.load("prepare", [*words, *more], Prepare)


@pytest.mark.slow
def test_an_open_upsampling_is_measured_once_and_recorded(tmp_path, capsys):
    """Whichever the photos choose, the set keeps to it, and its fingerprint is that one's."""
    photos, root = textures(tmp_path / "photos", 8), tmp_path / "set"
    settings = settings_of(photos, root)
    teacher = AnimeGANv2(upsampling="auto")
    made = labelling.manifest_of(settings, teacher)
    said = capsys.readouterr().out
    assert said.count("upsampling=") == 3
    assert f"chosen: upsampling={teacher.upsampling}" in said
    assert not teacher.open_choices()
    assert made.teacher == teacher.fingerprint()

    # As if another machine had chosen another one: the set there decides.
    other = next(n for n in ("asymmetric", "half_pixel") if n != teacher.upsampling)
    same_weights = AnimeGANv2(upsampling="auto")
    same_weights.load_state_dict(teacher.state_dict())
    same_weights.choose(other)
    root.mkdir()
    write_manifest(root, labelling.manifest_of(settings, same_weights), None)
    again = AnimeGANv2(upsampling="auto")
    again.load_state_dict(teacher.state_dict())
    remade = labelling.manifest_of(settings, again)
    assert again.upsampling == other
    assert remade.teacher == same_weights.fingerprint()
    assert capsys.readouterr().out == ""


def test_a_set_of_another_upsampling_is_refused_with_the_reason(tmp_path):
    photos, root = textures(tmp_path / "photos", 4), tmp_path / "set"
    settings = settings_of(photos, root)
    old, new = AnimeGANv2(), AnimeGANv2(upsampling="asymmetric")
    new.load_state_dict(old.state_dict())
    make(photos, root, manifest=labelling.manifest_of(settings, old))
    other = labelling.manifest_of(settings, new)
    with pytest.raises(DistillError, match=r"upsampling.*data\.root=DIR"):
        other.check(root)


@pytest.mark.parametrize("mode", ["asymmetric", "align_corners"])
@pytest.mark.campaign
def test_the_real_teacher_lies_on_its_photos_only_as_it_was_trained(assets, mode):
    """Hayao's weights come from TensorFlow 1: 3 pixels off with the port's corners."""
    folder = assets / "photos/wild"
    found = [
        photo for kind in ("people", "scenes", "things") for photo in find_photos(folder / kind)
    ]
    teacher = AnimeGANv2(assets / "teachers/animegan2_hayao.pt", upsampling=mode).fast()
    taken = [some_squares(found[start::3], 256, 1.0) for start in range(3)]
    squares = torch.cat([each for each in taken if each is not None])[:32]
    with torch.inference_mode():
        drawn = torch.cat([teacher(photo) for photo in squares.split(1)])
    off = typical(displacement(drawn, squares)).abs()
    if mode == "asymmetric":
        assert off.max() <= 0.25
        assert check_teacher(teacher, squares[:8]).mirror >= 28
    else:
        assert off[-1, -1].min() > 2
        assert check_teacher(teacher, squares[:8]).mirror < 25


@pytest.mark.slow
def test_bfloat16_is_of_the_set_not_of_the_machine(tmp_path):
    photos, root = textures(tmp_path / "photos", 4), tmp_path / "set"
    settings = settings_of(photos, root, "label.precision=bfloat16")
    teacher = AnimeGANv2(upsampling="asymmetric")
    rough = labelling.manifest_of(settings, teacher)
    assert rough.precision == "bfloat16"
    make(photos, root, manifest=rough)
    assert labelling.manifest_of(settings_of(photos, root), teacher).precision == "bfloat16"
    exact = labelling.manifest_of(settings_of(photos, root, "label.precision=float32"), teacher)
    with pytest.raises(DistillError, match="precision"):
        exact.check(root)


def test_a_teacher_that_loses_too_much_in_bfloat16_is_not_asked_to(tmp_path):
    photos = textures(tmp_path / "photos", 4)
    words = [f"photos={photos}", f"data.root={tmp_path / 'set'}", "label.precision=bfloat16"]
    settings = compose.load("prepare", words, Prepare)
    with pytest.raises(DistillError, match=r"label\.precision=bfloat16"):
        labelling.manifest_of(settings, load_teacher(settings.style, settings.teacher))


def test_pictures_in_bfloat16_are_the_float32_ones_but_for_rounding(tmp_path):
    photos = textures(tmp_path / "photos", 4)

    class Mixes(Teacher):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Conv2d(3, 3, 1)
            nn.init.constant_(self.layer.weight, 0.3)
            nn.init.zeros_(self.layer.bias)

        def forward(self, photo: Tensor) -> Tensor:
            return self.layer(photo)

    for precision in ("float32", "bfloat16"):
        manifest = replace(MANIFEST, precision=precision)
        make(photos, tmp_path / precision, manifest=manifest, teacher=Mixes())
    exact, rough = (
        {
            path.name: torch.frombuffer(bytearray(Image.open(path).tobytes()), dtype=torch.uint8)
            for path in (tmp_path / precision).glob("*/stylized/*.png")
        }
        for precision in ("float32", "bfloat16")
    )
    assert exact.keys() == rough.keys()
    differences = torch.cat([(exact[n].int() - rough[n].int()).abs() for n in exact])
    assert 0 < differences.max() <= 1  # 8 bits of mantissa
