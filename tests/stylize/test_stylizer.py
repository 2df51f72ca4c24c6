"""A student on pictures in memory. The one called `hayao` here gives the negative."""

import numpy as np
import pytest
import torch
from PIL import Image
from skimage import data

import distill
from distill.core.errors import DistillError
from distill.stylize import __main__ as stylize
from support.commands import run
from support.stylize_setup import picture, pixels

COLOURS = np.random.default_rng(0).integers(0, 256, (40, 48, 3), np.uint8)


@pytest.fixture
def negative(shipped_students):
    return distill.load("hayao", device="cpu")


def test_arrays_keep_their_kind_and_shape(negative):
    given = COLOURS.copy()
    np.testing.assert_array_equal(negative(given), 255 - COLOURS)
    np.testing.assert_array_equal(given, COLOURS)
    for kind in (np.float16, np.float32, np.float64):
        output = negative((COLOURS / 255).astype(kind))
        assert output.dtype == kind
        np.testing.assert_allclose(
            output, 1 - COLOURS / 255, atol=2e-3 if kind is np.float16 else 1e-6
        )


def test_batches_are_their_pictures_one_by_one(negative):
    batch = np.stack([COLOURS, COLOURS[::-1]])
    np.testing.assert_array_equal(negative(batch), 255 - batch)
    mixed = negative([Image.fromarray(COLOURS), COLOURS[:32]])
    np.testing.assert_array_equal(np.asarray(mixed[0]), 255 - COLOURS)
    np.testing.assert_array_equal(mixed[1], 255 - COLOURS[:32])
    assert negative([]) == []


def test_transparency_is_kept(negative):
    alpha = np.full((40, 48, 1), 128, np.uint8)
    see_through = np.concatenate([COLOURS, alpha], -1)
    expected = np.concatenate([255 - COLOURS, alpha], -1)
    np.testing.assert_array_equal(negative(see_through), expected)
    np.testing.assert_array_equal(np.asarray(negative(Image.fromarray(see_through))), expected)
    opaque = np.concatenate([COLOURS, 0 * alpha + 255], -1)
    assert negative(opaque).shape == (40, 48, 4)  # an array has the channels that it had
    assert negative(Image.fromarray(opaque)).mode == "RGB"


def test_pictures_are_taken_as_the_command_takes_them(negative, tmp_path):
    exif = Image.Exif()
    exif[274] = 6  # a quarter to the right
    photo = picture(60, 50)
    for name, options in {"turned.png": {"exif": exif}, "grey.png": {}, "palette.png": {}}.items():
        kind = {"grey.png": "L", "palette.png": "P"}.get(name, "RGB")
        photo.convert(kind).save(tmp_path / name, **options)
        assert run(stylize, name, "-o", f"to-{name}", "size=64", "device=cpu") == 0
        with Image.open(tmp_path / name) as image:
            stylized = negative(image, size=64)
        np.testing.assert_array_equal(np.asarray(stylized), pixels(f"to-{name}"))


def test_size_is_what_the_student_sees(shipped_students):
    fine, coarse = (distill.load("toon", size=size, device="cpu") for size in (96, 32))
    again = fine(COLOURS, size=32)
    np.testing.assert_array_equal(again, coarse(COLOURS))
    assert (again != fine(COLOURS)).any()


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (COLOURS.astype(int), r"array \(40, 48, 3\) int64: want uint8, or float in \[0, 1\]"),
        (COLOURS / 1.0, r"array \(40, 48, 3\) float64: has values from 0 to 255, want \[0, 1\]"),
        (COLOURS / 127.5 - 1, r"has values from -1 to 1, want \[0, 1\]"),
        (np.full((8, 8, 3), np.nan), "has values from nan to nan"),
        (
            COLOURS[..., 0],
            r"ndarray \(40, 48\): want a PIL picture, an array \(H, W, 3 ",
        ),
        (COLOURS.transpose(2, 0, 1), r"ndarray \(3, 40, 48\): want a PIL picture"),
        (COLOURS[:0], r"ndarray \(0, 48, 3\): want"),
        (COLOURS[None][:0], r"ndarray \(0, 40, 48, 3\): want"),
        (torch.zeros(1, 3, 8, 8), r"Tensor \(1, 3, 8, 8\): want"),
        ("photo.jpg", "str : want a PIL picture"),
        ([COLOURS, None], "NoneType : want"),
        (Image.new("F", (8, 8)), "a 8×8 picture: pixels of the kind F are not supported"),
        (Image.new("RGB", (0, 8)), "a 0×8 picture: "),
    ],
)
def test_what_is_no_picture_or_out_of_range_is_told(negative, given, line):
    with pytest.raises(DistillError, match=line):
        negative(given)


@pytest.mark.parametrize("size", [31, 32769, 7.5, "large"])
def test_a_size_out_of_range_is_told(negative, size):
    with pytest.raises(DistillError, match=f"^size={size!r}: "):
        negative(COLOURS, size=size)


@pytest.mark.parametrize(
    "said", [{"face": "paste"}, {"overlay": "glasses"}, {"face": "wear", "overlay": ["hair"]}]
)
def test_faces_and_stickers_as_the_command_has_them(shipped_students, capsys, said):
    astronaut = data.astronaut()
    Image.fromarray(astronaut).save("photo.png")
    typed = [f"{key}={value}".replace("'", "") for key, value in said.items()]
    assert run(stylize, "photo.png", "device=cpu", *typed) == 0
    worn = distill.load("hayao", device="cpu", **said)
    np.testing.assert_array_equal(worn(astronaut), pixels("stylized/photo-hayao.png"))
    assert worn(Image.fromarray(astronaut)).mode == "RGB"
    capsys.readouterr()
    nobody = worn(COLOURS)
    np.testing.assert_array_equal(nobody, COLOURS if "wear" in said.values() else 255 - COLOURS)
    assert capsys.readouterr().err.startswith("a 48×40 picture: no face ")


def test_what_load_cannot_give_is_one_line(shipped_students):
    for said in ({"face": "crop"}, {"compare": True}, {"face": "wear"}, {"overlay": "none"}):
        with pytest.raises(DistillError, match=f"{next(iter(said))}="):
            distill.load("hayao", device="cpu", **said)
