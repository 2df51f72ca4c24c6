"""loss.region: weights of pixels by parts of faces and by masks."""

import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from distill.config import compose
from distill.config.settings.training import Train
from distill.core.errors import DistillError
from distill.data import regions
from distill.data.datamodule import data_module
from distill.data.datasets import PairSet
from distill.data.faces import Box, Face
from distill.data.pairs import Pair
from distill.data.regions import ONE, Regions

# A face in a photo of 100×80, whose centre square is 80 wide: eyes 20 apart, looking at us.
FACE = Face(Box(10, 10, 60, 60), ((40, 30), (60, 30), (50, 41), (50, 51)))


def loss(**settings):
    words = [f"loss.{key}={value}" for key, value in settings.items()]
    return compose.load("train", words, Train).loss


@pytest.fixture
def found(monkeypatch):
    """A detector that says what a test wants, and counts the photos it was asked about."""
    faces, asked = [FACE], []
    monkeypatch.setattr(
        regions, "point_finder", lambda: lambda photo: asked.append(photo.shape) or faces
    )
    return faces, asked


def pairs(root, count=2, size=(100, 80)):
    made = []
    for i in range(count):
        for kind in ("photo", "stylized"):
            (root / kind).mkdir(parents=True, exist_ok=True)
            Image.new("RGB", size, (i, 0, 0)).save(root / kind / f"{i}.png")
        made.append(Pair(root / "photo" / f"{i}.png", root / "stylized" / f"{i}.png"))
    return made


def test_parts_lie_where_the_marks_put_them(tmp_path, found):
    weighed = Regions(loss(region="{eyes: 3, mouth: 2}"), pairs(tmp_path), tmp_path)
    levels = weighed.levels(0, 80, 80).numpy()  # the centre square: 10 pixels less to the left
    assert levels.dtype == np.uint8
    assert levels[30, 30] == levels[30, 50] == 3 * ONE
    assert levels[51, 40] == 2 * ONE
    assert levels[41, 40] == levels[0, 0] == ONE
    larger = weighed.levels(0, 320, 320).numpy()
    assert larger[4 * 30 + 2, 4 * 50 + 2] == 3 * ONE
    area = np.pi * (0.32 * 80) * (0.22 * 80)  # of an ellipse
    assert (larger == 3 * ONE).sum() == pytest.approx(2 * area, rel=0.08)
    whole = weighed.levels(0, 80, 100).numpy()  # of a photo that is not cut
    assert whole[30, 60] == 3 * ONE
    assert whole[51, 50] == 2 * ONE


def test_the_higher_weight_lies_on_top_and_a_rim_is_a_rim(tmp_path, found):
    two = Regions(loss(region="{face: 0, eyes: 4, outline: 2}"), pairs(tmp_path), tmp_path)
    levels = two.levels(0, 80, 80).numpy()
    assert levels[30, 50] == 4 * ONE
    assert levels[41, 40] == 0
    assert levels[40, 40 + 22] == 2 * ONE
    assert levels[2, 2] == ONE


def test_a_turned_face_has_turned_parts(tmp_path, found):
    faces, _ = found
    turn = np.exp(0.5j * np.pi)  # by a right angle, around the middle of the photo
    spots = [50 + 40j + turn * (complex(*at) - 50 - 40j) for at in FACE.points]
    faces[:] = [Face(FACE.box, tuple((z.real, z.imag) for z in spots))]
    made = pairs(tmp_path)
    turned = Regions(loss(region="{eyes: 3, nose: 2}"), made, tmp_path).levels(0, 80, 80).numpy()
    faces[:] = [FACE]
    (tmp_path / regions.FILE).unlink()
    upright = Regions(loss(region="{eyes: 3, nose: 2}"), made, tmp_path).levels(0, 80, 80).numpy()
    assert (np.rot90(upright, -1) == turned).mean() > 0.98
    assert (upright == turned).mean() < 0.97


def test_faces_are_found_once_and_kept_with_the_set(tmp_path, found):
    faces, asked = found
    root = tmp_path / "set"
    made = pairs(root, 3)
    first = Regions(loss(region="{eyes: 3}"), made, root).levels(2, 80, 80)
    assert len(asked) == 3
    faces[:] = []
    again = Regions(loss(region="{eyes: 3}"), made, root).levels(2, 80, 80)
    assert torch.equal(first, again)
    shutil.move(root, tmp_path / "moved")  # a set that is elsewhere keeps its faces
    there = [Pair(tmp_path / "moved/photo" / p.name, None) for p in made]
    moved = Regions(loss(region="{eyes: 3}"), there, tmp_path / "moved").levels(2, 80, 80)
    assert torch.equal(first, moved)
    assert len(asked) == 3
    Image.new("RGB", (300, 300)).save(tmp_path / "moved/photo/1.png")  # another photo
    (tmp_path / "moved/stylized/1.png").unlink()
    Image.new("RGB", (300, 300)).save(tmp_path / "moved/stylized/1.png")
    there = [Pair(p.photo, tmp_path / "moved/stylized" / p.name) for p in there]
    changed = Regions(loss(region="{eyes: 3}"), there, tmp_path / "moved")
    assert len(asked) == 4
    assert (changed.levels(1, 80, 80) == ONE).all()  # no face
    assert torch.equal(changed.levels(2, 80, 80), first)


def test_brows_are_where_a_network_has_them(tmp_path, found, monkeypatch):
    with pytest.raises(DistillError, match=r"brows: no face_landmark.onnx in"):
        Regions(loss(region="{brows: 3}"), pairs(tmp_path), tmp_path)
    left = np.array([30, 35, 40, 45, 48, 48, 45, 40, 35, 30]) + 1j * np.repeat([22, 25], 5)
    brows = np.stack([left, left + 24])
    asked = []
    monkeypatch.setattr(
        regions, "brow_finder", lambda: lambda _photo, face: asked.append(face) or brows
    )
    made = pairs(tmp_path)
    Regions(loss(region="{eyes: 2}"), made, tmp_path)  # keeps marks without brows
    for _ in range(2):
        weighed = Regions(loss(region="{brows: 3, eyes: 2}"), made, tmp_path)
    assert len(asked) == 2
    levels = weighed.levels(0, 80, 100).numpy()
    assert (levels[22:26, 31:48] == 3 * ONE).all()
    assert (levels[23, 55:71] == 3 * ONE).all()
    assert levels[15, 40] == levels[23, 51] == ONE
    assert levels[30, 40] == 2 * ONE


def test_masks_of_other_parts(tmp_path, found):
    made = pairs(tmp_path / "set")
    half = Image.new("L", (50, 40))
    half.paste(255, (0, 0, 25, 40))
    (tmp_path / "masks").mkdir()
    half.save(tmp_path / "masks/0.png")
    named = loss(region="{mask: 5}", masks=tmp_path / "masks/0.png")
    levels = Regions(named, made, tmp_path).levels(1, 80, 100).numpy()
    assert (levels[:, :48] == 5 * ONE).all()
    assert (levels[:, 52:] == ONE).all()
    assert not found[1]  # no face is looked for
    with pytest.raises(DistillError, match=r"masks: no 1\.png, named as its pair"):
        Regions(loss(region="{mask: 5}", masks=tmp_path / "masks"), made, tmp_path)
    with pytest.raises(DistillError, match="of which masks"):
        Regions(loss(region="{mask: 5}"), made, tmp_path)


@pytest.mark.parametrize("zoom", [0, 0.3])
def test_weights_are_cut_and_mirrored_with_their_photo(tmp_path, found, zoom):
    """The photo itself is painted with the weights: they agree at every position of the stream."""
    (pair,) = pairs(tmp_path, 1, (128, 128))
    found[0][:] = [Face(FACE.box, tuple((1.28 * x, 1.6 * y) for x, y in FACE.points))]
    weighed = Regions(loss(region="{eyes: 3, nose: 9}"), [pair], tmp_path)
    painted = np.repeat(weighed.levels(0, 128, 128).numpy()[..., None], 3, 2)
    (tmp_path / "painted").mkdir()
    Image.fromarray(painted).save(tmp_path / "painted/0.png")
    both = [Pair(tmp_path / "painted/0.png", tmp_path / "painted/0.png")]
    stream = PairSet(both, 128, train=True, crop_size=96, zoom=zoom, regions=weighed)
    samples = [stream[position] for position in range(12)]
    for sample in samples:
        assert sample["region"].shape == sample["photo"].shape[:2]
        assert torch.equal(sample["region"], sample["photo"][..., 0])
        assert torch.equal(sample["photo"], sample["target"])
    assert len({sample["region"].numpy().tobytes() for sample in samples}) > 6
    held_out = PairSet(both, 128, train=False, regions=weighed)[0]
    assert torch.equal(held_out["region"], held_out["photo"][..., 0])


@pytest.mark.parametrize("typed", ["loss.region={ears: 2}", "loss.region={eyes: 16}"])
def test_other_parts_and_weights_are_refused(typed):
    with pytest.raises(DistillError, match=r"loss\.region"):
        compose.load("train", [typed], Train)


@pytest.mark.parametrize("typed", ["data=shards", "data=photos", "data.align=true"])
def test_it_is_of_folders_of_pairs(typed, tmp_path):
    words = ["style=own", f"data.root={tmp_path}", "loss.region={eyes: 2}", typed]
    with pytest.raises(DistillError, match=r"loss\.region: of a folder of pairs only"):
        data_module(compose.load("train", words, Train))
