"""Which pictures an export takes, and what it says of folders that hold none."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from distill.config import compose
from distill.config.settings.training import Train
from distill.core.errors import DistillError
from distill.export import samples
from distill.export.onnx import OnnxExporter
from distill.export.subject import Subject
from support.students_on_file import settings_of_student

SIDE = 32


@pytest.fixture
def of():
    """Something to export that has no pictures of its own."""
    return Subject(nn.Identity(), settings_of_student(), OnnxExporter(size=SIDE))


def grey(folder: Path, levels: list[int]) -> Path:
    """Pictures of one grey each, in the order of their names."""
    folder.mkdir(parents=True)
    for number, level in enumerate(levels):
        picture = np.full((80, 96, 3), level, np.uint8)
        Image.fromarray(picture).save(folder / f"{number:03}.png")
    return folder


@pytest.mark.parametrize("take", [samples.calibration, samples.held_out])
def test_those_of_a_folder_are_centre_squares(take, of, tmp_path):
    found = take(of, str(grey(tmp_path / "mine", [0, 51, 102])))
    found = found if isinstance(found, torch.Tensor) else found.photos
    assert found.shape == (3, 3, SIDE, SIDE)
    torch.testing.assert_close(found.mean((1, 2, 3)), torch.tensor([0.0, 0.2, 0.4]))


def test_of_another_shape_they_are_its_centre(of, tmp_path):
    """A ramp of 96 levels across: 2:1 of 80 rows keeps all columns, 1:2 the 40 in the middle."""
    (tmp_path / "mine").mkdir()
    ramp = np.broadcast_to(np.arange(96, dtype=np.uint8)[None, :, None], (80, 96, 3))
    Image.fromarray(np.ascontiguousarray(ramp)).save(tmp_path / "mine/a.png")
    for size, ends in (((32, 64), (0, 95)), ((64, 32), (28, 67))):
        wide = replace(of, exporter=OnnxExporter(size=size))
        picture = samples.held_out(wide, str(tmp_path / "mine")).photos[0]
        assert picture.shape == (3, *size)
        shown = (picture[0, 0, 0] * 255, picture[0, 0, -1] * 255)
        assert shown == pytest.approx(ends, abs=2)


@pytest.mark.parametrize(
    ("take", "most"), [(samples.calibration, 96), (samples.held_out, 64)], ids=["train", "val"]
)
def test_of_many_they_are_spread_from_first_to_last(take, most, of, tmp_path):
    found = take(of, str(grey(tmp_path / "many", [*range(200)])))
    levels = (found if isinstance(found, torch.Tensor) else found.photos).mean((1, 2, 3)) * 255
    assert len(levels) == most
    assert (levels[0].round(), levels[-1].round()) == (0, 199)
    assert (levels.diff() > 0).all()


@pytest.mark.parametrize(
    ("take", "key"), [(samples.calibration, "calibration"), (samples.held_out, "photos")]
)
def test_a_folder_without_pictures_is_named_with_its_setting(take, key, of, tmp_path):
    gone = tmp_path / "gone"
    with pytest.raises(DistillError, match=f"^{key}={gone}: no such folder"):
        take(of, str(gone))
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "a.png").write_bytes(b"no picture")
    with pytest.raises(DistillError, match=f"^{key}={broken}: none of its pictures can be read$"):
        take(of, str(broken))


@pytest.mark.parametrize("fraction", [0.3, 0.7])
def test_held_out_pictures_are_those_that_the_run_held_out(fraction, tmp_path):
    grey(tmp_path / "own/A", [*range(40)])
    grey(tmp_path / "own/B", [*range(40)])
    words = [f"data.root={tmp_path / 'own'}", "style=own", f"data.val_fraction={fraction}"]
    source = compose.load("train", [*words, "data.test_fraction=0"], Train)
    held_out = samples.photo_pictures(source, "val", (SIDE, SIDE), channels=3)
    assert held_out.count == pytest.approx(40 * fraction, abs=6)
    learnt = samples.photo_pictures(source, "train", (SIDE, SIDE), channels=3)
    assert held_out.count + learnt.count == 40
