"""Weaker, and parts alone. `hayao` here gives the negative, so every pixel has a known value."""

import math

import numpy as np
import onnx
import onnxruntime
import pytest
from PIL import Image
from scipy.ndimage import map_coordinates
from skimage import data

import distill
from distill.core.errors import DistillError
from distill.data.faces import BlazeFace, Box, Face, network_file
from distill.export.onnx import OnnxExporter
from distill.stylize import __main__ as stylize
from distill.stylize.parts import SIDE, face_mask
from support.astronaut_parts import face_and_rest, person_and_rest
from support.commands import run
from support.stylize_setup import Negative, close, pixels, put

ASTRONAUT = data.astronaut()
SURE = {"faces": face_and_rest, "people": person_and_rest}


@pytest.fixture
def negative(shipped_students):
    return distill.load("hayao", device="cpu")


def mixed(photo, stylised, share):
    """What the page draws: its canvas rounds opacity to 8 bits, then the colours."""
    return np.rint(photo + np.asarray(share)[..., None] * (stylised.astype(float) - photo))


@pytest.mark.parametrize("strength", [0.0, 0.25, 0.6, 1.0])
def test_strength_is_the_share_of_the_way_from_the_photo(negative, strength):
    photo = ASTRONAUT[:100, :140]
    expected = mixed(photo, 255 - photo, strength)
    assert close(negative(photo, strength=strength).astype(float), expected, 1)
    put("photo.png", Image.fromarray(photo))
    assert run(stylize, "photo.png", "device=cpu", f"strength={strength}") == 0
    np.testing.assert_array_equal(
        pixels("stylized/photo-hayao.png"), negative(photo, strength=strength)
    )


def test_transparency_of_photo_and_network(negative, tmp_path):
    alpha = np.tile(np.array([0, 128, 255, 255], np.uint8), (40, 12))
    photo = np.dstack([ASTRONAUT[:40, :48], alpha])
    output = negative(photo, strength=0.6)
    np.testing.assert_array_equal(output[..., 3], alpha)
    seen = alpha > 0
    expected = mixed(photo[..., :3], 255 - photo[..., :3], 0.6)
    assert np.abs(output[..., :3] - expected)[seen].max() <= 1
    onnx.save(OnnxExporter(size=64).export(Negative(4)), tmp_path / "clear.onnx")
    clear = distill.load(tmp_path / "clear.onnx", device="cpu")  # half see-through everywhere
    output = clear(photo[..., :3], strength=0.6)
    assert (output[..., 3] == 255).all()
    expected = mixed(photo[..., :3], 255 - photo[..., :3], 0.6 * 128 / 255)
    assert close(output[..., :3].astype(float), expected, 1)


@pytest.mark.parametrize("part", SURE)
def test_a_part_alone(negative, part):
    sure, other = SURE[part]()
    output = negative(ASTRONAUT, parts=[part])
    assert close(output[sure], 255 - ASTRONAUT[sure], 1)
    np.testing.assert_array_equal(output[other], ASTRONAUT[other])
    put("photo.png", Image.fromarray(ASTRONAUT))
    assert run(stylize, "photo.png", "device=cpu", f"parts=[{part}]") == 0
    np.testing.assert_array_equal(pixels("stylized/photo-hayao.png"), output)


def test_background_is_what_people_leave_and_parts_are_taken_together(negative):
    sure, other = person_and_rest()
    output = negative(ASTRONAUT, parts="background")
    np.testing.assert_array_equal(output[other], 255 - ASTRONAUT[other])
    np.testing.assert_array_equal(output[sure], ASTRONAUT[sure])
    face, _ = face_and_rest()
    both = negative(ASTRONAUT, parts=["background", "faces"])
    assert close(both[other | face], 255 - ASTRONAUT[other | face], 1)


@pytest.mark.parametrize("size", [(512, 512), (200, 150)])
def test_people_by_an_independent_computation(negative, size):
    """Bilinear between the mask's pixels, opacity from .1 to .9 of it, as part_mask.ts has it."""
    photo = Image.fromarray(ASTRONAUT).resize(size)
    squeezed = np.asarray(photo.resize((SIDE, SIDE), Image.Resampling.BICUBIC), np.float32) / 255
    session = onnxruntime.InferenceSession(str(network_file("selfie_segmentation")))
    (mask,) = session.run(None, {"photo": squeezed.transpose(2, 0, 1)[None]})
    down, across = (
        np.clip((np.arange(side) + 0.5) * SIDE / side - 0.5, 0, SIDE - 1) for side in size[::-1]
    )
    at = np.meshgrid(down, across, indexing="ij")
    values = map_coordinates(mask[0, 0], at, order=1, mode="nearest")
    share = np.rint(255 * np.clip((values - 0.1) / 0.8, 0, 1)) / 255
    pixels = np.asarray(photo)
    expected = mixed(pixels, 255 - pixels, 0.6 * share)
    output = np.asarray(negative(photo, strength=0.6, parts="people")).astype(float)
    assert close(output, expected, 1)


def test_small_faces_beside_a_large_one_are_seen_as_on_the_page(negative):
    photo = Image.fromarray(ASTRONAUT)
    photo.paste(photo.crop((150, 30, 300, 210)).resize((75, 90)), (420, 410))
    output = np.asarray(negative(photo, parts=["faces"]), int)
    for left, top in ((215, 100), (450, 445)):  # within her cheeks
        at = slice(top, top + 20), slice(left, left + 20)
        assert close(output[at], 255 - np.asarray(photo, int)[at], 1)


@pytest.mark.parametrize("lean", [0.0, 0.4, -1.2])
def test_the_oval_of_a_face(lean):
    """Its edge, where opacity is one half, by the ellipse's own equation."""
    cos, sin = math.cos(lean), math.sin(lean)

    def turned(x, y):  # about the box's middle
        return 200 + cos * x - sin * y, 160 + sin * x + cos * y

    eyes = turned(-30, -20), turned(30, -20)
    points = (*eyes, turned(0, 0), turned(0, 40), turned(-60, 0), turned(60, 0))
    mask = face_mask([Face(Box(100, 140, 120, 120), points)], (400, 320))
    for angle in np.linspace(0, 2 * math.pi, 24, endpoint=False):
        for grown, expected in ((0.85, 1.0), (1.0, 0.5), (1.15, 0.0)):
            x = 0.47 * 120 * grown * math.cos(angle)
            y = 0.62 * 120 * grown * math.sin(angle) - 0.06 * 120
            px, py = turned(x, y)
            value = map_coordinates(
                mask, [[py * SIDE / 320 - 0.5], [px * SIDE / 400 - 0.5]], order=1, mode="nearest"
            )
            assert value == pytest.approx(expected, abs=0.06)


def test_nobody_there_is_said(negative, capsys):
    nobody = np.full((80, 90, 3), 90, np.uint8)
    assert not BlazeFace()(nobody)
    np.testing.assert_array_equal(negative(nobody, parts=["faces"]), nobody)
    said = "nothing of parts=[faces] in it; it stays"
    assert capsys.readouterr().err == f"a 90×80 picture: {said}\n"


@pytest.mark.parametrize(
    ("named", "line"),
    [
        ({"strength": 1.2}, "strength=1.2: input should be less than or equal to 1"),
        ({"parts": ["hands"]}, r"parts.*'faces', 'people' or 'background'"),
    ],
)
def test_what_is_out_of_range_is_told(negative, named, line):
    with pytest.raises(DistillError, match=line):
        negative(ASTRONAUT[:64, :64], **named)
