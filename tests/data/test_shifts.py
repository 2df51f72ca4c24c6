"""data.align=true: what is cut out of a pair, and what is kept of it."""

import numpy as np
import pytest
from PIL import Image

from distill.config import compose
from distill.config.settings.training import Train
from distill.core.errors import DistillError
from distill.data import datamodule, shifts
from distill.data.pairs import Pair
from distill.data.shifts import aligned_squares, shifts_of
from distill_gan import loaders as gan_loaders
from distill_gan.settings import Pix2PixTrain
from support.coordinate_pictures import coordinates
from support.textures import texture


def pair(folder, name, down=0.0, right=0.0, drawn=None):
    """A texture and its negative, moved."""
    drawing = 255 - texture(len(name), down, right) if drawn is None else drawn
    paths = [folder / side / f"{name}.png" for side in "AB"]
    for path, picture in zip(paths, (texture(len(name)), drawing), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(path)
    return Pair(*paths)


def test_both_show_the_same_afterwards(tmp_path):
    """Red is x + 9 and green y + 9; the second lies 6 px lower and 2 px further to the left."""
    first = np.asarray(Image.open(coordinates(tmp_path / "a.png", 0, (100, 100))))
    first = first + np.array([9, 9, 0])
    second = first + np.array([2, -6, 0])
    pictures = (Image.fromarray(each.astype(np.uint8)) for each in (first, second))
    a, b = aligned_squares(*pictures, np.array([0.06, -0.02], np.float32), 94)
    inner = np.s_[3:-3, 3:-3]
    assert a.size == b.size == (94, 94)
    assert np.abs(np.asarray(a)[inner].astype(int) - np.asarray(b)[inner]).max() <= 1


def test_no_shift_is_the_centre_square(tmp_path):
    wide = Image.open(coordinates(tmp_path / "a.png", 9, (130, 96)))
    a, b = aligned_squares(wide, wide, np.zeros(2, np.float32), 96)
    assert np.array_equal(np.asarray(a), np.asarray(wide)[:, 17:113])
    assert np.array_equal(np.asarray(b), np.asarray(a))


def test_shifts_are_measured_once(tmp_path, monkeypatch):
    drawn = texture(9)
    pairs = [pair(tmp_path, "a", 4, -3), pair(tmp_path, "bb"), pair(tmp_path, "ccc", drawn=drawn)]
    found = shifts_of(pairs, tmp_path)
    assert found[:2] * 256 == pytest.approx(np.array([[4, -3], [0, 0]]), abs=0.1)
    assert not found[2].any()  # another picture: left as it is
    assert np.array_equal(shifts_of(pairs, tmp_path, swap=True), -found)

    def measured_again(*_):
        raise AssertionError

    monkeypatch.setattr(shifts, "register", measured_again)
    assert np.array_equal(shifts_of(pairs, tmp_path), found)
    pair(tmp_path, "a", 1, 1)
    with pytest.raises(AssertionError):
        shifts_of(pairs, tmp_path)


def settings(recipe, *typed):
    schema = Pix2PixTrain if recipe == "pix2pix" else Train
    return compose.load("train", [f"recipe={recipe}", *typed], schema)


@pytest.mark.parametrize("recipe", ["distill", "pix2pix"])
@pytest.mark.slow
def test_training_sees_drawings_that_lie_over_their_photos(tmp_path, recipe, monkeypatch):
    monkeypatch.setenv("DISTILL_CACHE", str(tmp_path / "cache"))
    for number in range(1, 9):
        pair(tmp_path / "set", "n" * number, 5, 4)
    typed = [f"data.root={tmp_path / 'set'}", "data.val_fraction=0.3", "data.test_fraction=0"]
    load = gan_loaders.paired
    if recipe == "pix2pix":
        typed += ["data.size=256", "data.direction=BtoA"]
    else:
        typed += ["style=own", "style.resolution=256"]

        def load(made):
            return datamodule.data_module(made)

    off, laid = (load(settings(recipe, *typed, f"data.align={on}")) for on in ("false", "true"))
    for side in ("train", "val"):
        difference = [
            np.abs(255 - np.asarray(s["photo"]).astype(int) - np.asarray(s["target"])).mean()
            for s in (getattr(off, side)[0], getattr(laid, side)[0])
        ]
        assert difference[1] < 0.2 * difference[0]


@pytest.mark.parametrize(
    ("typed", "wrong"),
    [
        (["recipe=pix2pix", "data.root=x", "data.pad=white"], "leave data.pad=white out"),
        (["recipe=pix2pix", "data=shards", "data.root=x"], "of a folder of pairs only"),
        (["data=shards", "data.root=x"], "of a folder of pairs only"),
        (["data=photos", "photos=x"], "a teacher's output is aligned already"),
    ],
)
@pytest.mark.slow
def test_refused_in_one_line(tmp_path, monkeypatch, typed, wrong):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "bb", "ccc", "dddd"):
        pair(tmp_path / "x", name)
    schema = Pix2PixTrain if "recipe=pix2pix" in typed else Train
    made = compose.load("train", [*typed, "data.align=true"], schema)
    load = gan_loaders.paired if schema is Pix2PixTrain else (lambda s: datamodule.data_module(s))
    with pytest.raises(DistillError, match=rf"^data.align=true: .*{wrong}"):
        load(made)
