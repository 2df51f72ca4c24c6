"""The teacher's layer of lines beside its pictures: kept when labelling, read in training."""

import shutil

import numpy as np
import pytest
import torch
from PIL import Image

import distill
from distill.config import compose
from distill.config.registry import schema_of
from distill.core.errors import DistillError
from distill.data import datamodule
from distill_drawings.toon import Toon


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """Six photos with soft discs, labelled by toon."""
    folder = tmp_path_factory.mktemp("lines")
    rows, columns = np.mgrid[:96, :96]
    for number in range(6):
        away = np.hypot(rows - 30 - 6 * number, columns - 48)
        grey = 40 + 180 / (1 + np.exp((away - 22) / 2))
        picture = np.stack([grey, grey * 0.8, 255 - grey], -1).astype(np.uint8)
        (folder / "photos").mkdir(exist_ok=True)
        Image.fromarray(picture).save(folder / "photos" / f"disc{number}.png")
    distill.label_photos(folder / "photos", "toon", out=folder / "pairs", style={"resolution": 96})
    return folder / "pairs"


def data_of(root, *words):
    typed = [f"data.root={root}", "head=layers", "style=toon", "style.resolution=96", *words]
    return datamodule.data_module(compose.load("train", typed, schema_of))


def test_every_pair_has_the_layer_that_its_teacher_drew(labelled):
    names = [path.name for path in (labelled / "train/stylized").iterdir()]
    assert {path.name for path in (labelled / "train/ink").iterdir()} == {*names}
    photo = np.asarray(Image.open(labelled / "train/photo" / names[0]))
    tensor = torch.from_numpy(photo.copy()).permute(2, 0, 1)[None] / 255
    expected = Toon().layers(tensor)["ink"][0, 0]
    layer = torch.from_numpy(np.asarray(Image.open(labelled / "train/ink" / names[0])).copy())
    assert (layer / 255 - expected).abs().max() <= 0.5 / 255 + 1e-6
    assert expected.max() > 0.5


def test_crops_and_mirror_images_of_the_layer_go_with_the_photo(labelled):
    for position in range(4):
        sample = data_of(labelled, "data.crop_size=64").train[position]
        photo, layer = (
            np.asarray(Image.open(labelled / "train" / folder / sample["name"]))
            for folder in ("photo", "ink")
        )
        places = [
            layer[top : top + 64, left : left + 64][:, ::mirrored]
            for top in range(33)
            for left in range(33)
            for mirrored in (1, -1)
            if (
                photo[top : top + 64, left : left + 64][:, ::mirrored] == sample["photo"].numpy()
            ).all()
        ]
        assert any((place == sample["lines"].numpy()).all() for place in places)


def test_a_head_that_needs_no_lines_gets_none(labelled):
    assert "lines" not in data_of(labelled, "head=picture").train[0]


def test_a_missing_layer_is_one_line(labelled, tmp_path):
    copy = shutil.copytree(labelled, tmp_path / "copy")
    lost = next((copy / "train/ink").iterdir())
    lost.unlink()
    with pytest.raises(DistillError, match=f"has no {lost.name}"):
        data_of(copy)


def test_a_layer_of_another_size_counts_as_one_that_cannot_be_read(labelled, tmp_path, capsys):
    copy = shutil.copytree(labelled, tmp_path / "copy")
    wrong = next((copy / "train/ink").iterdir())
    Image.new("L", (80, 96)).save(wrong)
    data = data_of(copy)
    names = {data.train[position]["name"] for position in range(12)}
    assert wrong.name not in names
    assert "80×96 pixels, not as the photo" in capsys.readouterr().out
