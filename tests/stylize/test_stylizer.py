"""A student on pictures in memory. The one called `hayao` here gives the negative."""

from threading import Thread, get_ident
from time import sleep

import numpy as np
import onnx
import pytest
import torch
from PIL import Image
from skimage import data

import distill
from distill.core import process
from distill.core.errors import DistillError
from distill.core.onnx_files import ABOUT, note
from distill.export.onnx import OnnxExporter
from distill.stylize import __main__ as stylize
from distill.stylize import render
from support.commands import run
from support.stylize_setup import Negative, picture, pixels, shapes_run

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


def test_arrays_of_one_size_go_through_in_one_run(tmp_path, monkeypatch):
    model = OnnxExporter(size=64).export(Negative())
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    shapes = shapes_run(monkeypatch)
    for ours in (False, True):  # a file of others' gets one picture after the other
        if ours:
            note(model, ABOUT, "{}")
        onnx.save(model, tmp_path / "many.onnx")
        stylize = distill.load(tmp_path / "many.onnx", device="cpu")
        batch = np.random.default_rng(1).integers(0, 256, (3, 256, 256, 3), np.uint8)
        np.testing.assert_array_equal(stylize(batch), 255 - batch)
        np.testing.assert_allclose(stylize(batch / 255), 1 - batch / 255, atol=1e-6)
        odd = batch[:, :40, :48]  # filled up, so one by one
        np.testing.assert_array_equal(stylize(odd), 255 - odd)
        assert stylize(batch, size=64).shape == batch.shape
    runs, again = [shape[0] for shape in shapes[:9]], [shape[0] for shape in shapes[12:16]]
    assert runs == [1] * 9
    assert again == [2, 1, 2, 1]  # more would leave the processor's cache


def test_no_more_pictures_are_in_work_than_there_are_cores_for(shipped_students, monkeypatch):
    monkeypatch.setattr(process, "cores", lambda: 3)
    stylize = distill.load("hayao", device="cpu", threads=1)
    working, most, done = set(), [], []

    def slowly(photos, *_):
        working.add(get_ident())
        most.append(len(working))
        sleep(0.01)
        working.discard(get_ident())
        return photos

    monkeypatch.setattr(render, "stylise_batch", slowly)
    crew = [Thread(target=lambda: done.append(stylize(COLOURS))) for _ in range(20)]
    for each in crew:
        each.start()
    for each in crew:
        each.join()
    assert len(done) == 20
    assert max(most) == 4


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
        (np.full((8, 8, 3), 1.001), r"has values from 1.001 to 1.001, want"),
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
