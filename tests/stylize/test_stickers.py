"""overlay= and face=wear: stickers and drawn masks on faces, by their marks."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image
from skimage import data

from distill.core.errors import DistillError
from distill.data.faces import BlazeFace, Box, Face
from distill.export.onnx import OnnxExporter
from distill.stylize import __main__ as stylize
from distill.stylize import portraits, stickers
from distill.stylize.stickers import Sticker, Wardrobe, facing, lay, read_sticker
from distill.stylize.stylizing import open_student
from support import blazeface
from support.commands import run
from support.small_videos import decoded, make
from support.stylize_setup import Negative, picture, pixels
from support.stylize_setup import put as save

STRAIGHT = {"right_eye": 40 + 50j, "left_eye": 80 + 50j, "nose": 60 + 72j, "mouth": 60 + 92j}


def face(marks=STRAIGHT, by=0j):
    points = tuple(((at + by).real, (at + by).imag) for at in marks.values())
    return Face(Box(30, 20, 80, 80), points)


def dots(anchors, width=60, height=50):
    """A sticker that is see-through but for a white square of 5 pixels at each anchor."""
    levels = np.zeros((height, width, 4), np.uint8)
    for at in anchors.values():
        x, y = int(at.real), int(at.imag)
        levels[y - 2 : y + 3, x - 2 : x + 3] = 255
    return Sticker(Image.fromarray(levels), {m: at + 0.5 + 0.5j for m, at in anchors.items()})


@pytest.fixture
def found(monkeypatch):
    """The detector that stickers use says what a test wants it to."""
    faces: list[Face] = []
    monkeypatch.setattr(portraits, "BlazeFace", lambda: lambda _photo: faces)
    return faces


@pytest.mark.parametrize("turn", [1, 1.5j, -0.7 + 0.4j])
def test_anchors_lie_on_the_marks_of_a_face_that_is_moved_turned_and_scaled(turn):
    sticker = dots({"right_eye": 15 + 20j, "left_eye": 45 + 20j, "mouth": 30 + 40j})
    face = {m: 100 + 90j + turn * (at - 30 - 25j) for m, at in sticker.anchors.items()}
    page = Image.new("RGBA", (200, 180), "black")
    lay(page, sticker, face)
    red = np.asarray(page)[..., 0]
    for at in face.values():
        assert red[int(at.imag), int(at.real)] > 200
    assert (red > 128).sum() == pytest.approx(75 * abs(turn) ** 2, rel=0.2)
    lay(page, sticker, {m: at + 10000 for m, at in face.items()})  # beyond the page: nothing


def test_a_reduced_sticker_keeps_its_place():
    sticker = dots({"right_eye": 100 + 100j, "left_eye": 500 + 100j}, 600, 200)
    sticker = Sticker(
        sticker.picture.resize((1200, 400)), {m: 2 * at for m, at in sticker.anchors.items()}
    )
    page = Image.new("RGBA", (400, 200), "black")
    lay(page, sticker, {"right_eye": 50.5 + 80.5j, "left_eye": 350.5 + 80.5j})
    red = np.asarray(page)[..., 0].astype(float)
    rows, columns = np.mgrid[:200, :400] + 0.5
    for half, x in ((columns < 200, 50.5), (columns > 200, 350.5)):
        spot = (
            (red * half * columns).sum() / (red * half).sum(),
            (red * half * rows).sum() / (red * half).sum(),
        )
        assert spot == pytest.approx((x, 80.5), abs=0.3)


def test_opacity_weighs_what_is_seen():
    sticker = Sticker(
        Image.new("RGBA", (40, 40), "white"), {"right_eye": 10 + 20j, "left_eye": 30 + 20j}
    )
    page = Image.new("RGBA", (80, 80), "black")
    lay(page, sticker, {"right_eye": 30 + 40j, "left_eye": 50 + 40j}, 0.25)
    assert abs(int(np.asarray(page)[40, 40, 0]) - 64) <= 1


@pytest.mark.parametrize(("nose", "seen"), [(0, 1), (0.35, 1), (-0.5, 0.5), (0.65, 0), (-2, 0)])
def test_a_face_that_turns_away_fades(nose, seen):
    turned = STRAIGHT | {"nose": 60 + 40 * nose + 72j}
    assert facing(turned) == pytest.approx(seen)
    leaning = {m: at * np.exp(0.8j) for m, at in turned.items()}  # to a shoulder: as seen as before
    assert facing(leaning) == pytest.approx(seen)
    assert facing(dict.fromkeys(STRAIGHT, 5 + 5j)) == 0


def steady(frames):
    """The wardrobe's faces after each of these frames, each a list of faces."""
    coming = iter(frames)
    wardrobe = Wardrobe([], lambda _photo: next(coming), everyone=True, steady=True)
    page, states = Image.new("RGB", (160, 140)), []
    for _ in frames:
        assert wardrobe(page, page).size == page.size
        states.append([(f.marks["left_eye"], round(f.opacity, 6)) for f in wardrobe._faces])
    return states, wardrobe.frames_with_face


def test_a_video_s_lost_face_fades_and_comes_back():
    there, lost = [face()], []
    states, seen = steady([there, lost, lost, there, lost, lost, lost, lost, there])
    opacities = [round(s[0][1], 6) if s else None for s in states]
    assert opacities == [1, 0.8, 0.6, 0.8, 0.6, 0.4, 0.2, None, 0.2]
    assert all(s[0][0] == STRAIGHT["left_eye"] for s in states if s)
    assert seen == 3


def test_small_moves_are_smoothed_large_ones_followed():
    jitter = [[face(by=(-1) ** i * 0.5)] for i in range(40)]
    places = [s[0][0].real for s in steady(jitter)[0]][20:]
    assert np.ptp(places) < 0.35  # of 1 pixel
    jump = [s[0][0].real for s in steady([[face()], [face(by=30)]])[0]]
    assert jump[1] - jump[0] == pytest.approx(30, abs=0.1)


def test_faces_of_several_people_keep_to_theirs():
    one, other = face(), face(by=200)
    states, _ = steady([[one, other], [other, one], [other]])
    assert [len(s) for s in states] == [2, 2, 2]
    assert [s[0] for s in states] == [(80 + 50j, 1), (80 + 50j, 1), (80 + 50j, 0.8)]
    assert states[2][1] == (280 + 50j, 1)


SHIPPED = sorted(path.stem for path in stickers.SHIPPED.glob("*.json"))


@pytest.mark.parametrize("name", SHIPPED)
def test_a_sticker_of_the_package(name):
    sticker = read_sticker(name)
    alpha = np.asarray(sticker.picture)[..., 3]
    assert alpha.min() == 0
    assert alpha.max() > 200
    assert sticker.anchors["left_eye"].real > sticker.anchors["right_eye"].real
    if name not in ("glasses", "moustache", "beard"):
        return  # the eyes: a pixel of lens, none of hair
    for mark in ("nose", "mouth"):  # a beard leaves the mouth free
        if mark in sticker.anchors and name != "moustache":
            at = sticker.anchors[mark]
            inside = 0 <= at.imag < alpha.shape[0]
            assert not inside or alpha[int(at.imag), int(at.real)] < 60


def test_the_package_has_the_five():
    assert SHIPPED == ["beard", "eyeliner", "glasses", "hair", "moustache"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", "want {"),
        ('{"anchors": {"left_eye": [1]}}', "want {"),
        ('{"anchors": {"left_ey": [1, 2], "nose": [3, 4]}}', "did you mean left_eye"),
        ('{"anchors": {"left_eye": [1, 2]}}', "two marks or more"),
        ('{"anchors": {"left_eye": [1, 2], "nose": [1, 2]}}', "two marks or more"),
        ('{"anchors": {"left_eye": [1, NaN], "nose": [1, 2]}}', "two marks or more"),
    ],
)
def test_a_file_without_anchors_is_said(tmp_path, content, said):
    save(tmp_path / "hat.png", picture(mode="RGBA"))
    (tmp_path / "hat.json").write_text(content)
    with pytest.raises(DistillError, match=said):
        read_sticker(str(tmp_path / "hat.png"))


def test_an_unknown_sticker_is_said():
    with pytest.raises(DistillError, match="glasses"):
        read_sticker("glases")
    with pytest.raises(DistillError, match=r"hat\.json: no such file"):
        read_sticker("no/hat.png")


# As a command


def own_hat():
    save("hat.png", Image.new("RGBA", (40, 20), "red"))
    anchors = {"right_eye": [0, 10], "left_eye": [40, 10]}
    Path("hat.json").write_text(json.dumps({"anchors": anchors}))


def test_a_picture_and_what_it_wears(shipped_students, found, capsys):
    own_hat()
    photo = picture(160, 140)
    save("photo.png", photo)
    found[:] = [face()]
    assert run(stylize, "photo.png", "overlay=hat.png") == 0
    stylised = pixels("stylized/photo-hayao.png")
    assert (stylised[42:58, 42:78] == [255, 0, 0]).all()
    assert np.abs(stylised - (255 - np.asarray(photo).astype(int)))[:38].max() <= 1
    assert run(stylize, "photo.png", "face=wear", "overlay=[hat.png]") == 0
    worn = pixels("stylized/photo-hayao.png")
    assert (worn[42:58, 42:78] == [255, 0, 0]).all()
    assert (worn[:38] == np.asarray(photo)[:38]).all()
    assert capsys.readouterr().err == ""
    aside = face(STRAIGHT | {"nose": 90 + 72j})  # turned away
    for none in ([], [aside]):
        found[:] = none
        assert run(stylize, "photo.png", "face=wear", "overlay=[hat.png]") == 0
        said = "'photo.png': no face that looks at the camera; nothing is put on\n"
        assert capsys.readouterr().err == said
        assert (pixels("stylized/photo-hayao.png") == np.asarray(photo)).all()


@pytest.mark.parametrize("channels", [3, 4])
def test_what_a_network_made_of_a_sketch_is_worn(tmp_path, monkeypatch, found, channels):
    monkeypatch.chdir(tmp_path)
    onnx.save(OnnxExporter(size=64).export(Negative(channels)), "net.onnx")
    save("sketch.png", Image.new("RGB", (64, 64), "white"))  # the network draws black
    save("photo.png", Image.new("RGB", (600, 600), "white"))
    found[:] = [face({m: 3 * at for m, at in STRAIGHT.items()})]
    assert run(stylize, "photo.png", "model=net.onnx", "face=wear", "wear=sketch.png") == 0
    levels = pixels("stylized/photo-net.png")[..., 0]
    # The square is 5 distances between the eyes wide, with the eyes at 0.45 of it.
    middle = (120 + 240) / 2, 150 + 0.05 * 5 * 120
    assert levels[int(middle[1]), int(middle[0])] == pytest.approx(
        0 if channels == 3 else 128, abs=2
    )
    assert levels[475, 445] == pytest.approx(255 if channels == 3 else 128, abs=2)


def test_anchors_beside_a_sketch_count(tmp_path):
    onnx.save(OnnxExporter(size=64).export(Negative()), tmp_path / "net.onnx")
    save(tmp_path / "cat.png", Image.new("RGB", (64, 64)))
    (tmp_path / "cat.json").write_text('{"anchors": {"left_eye": [40, 20], "nose": [30, 30]}}')
    worn = stickers.network_sticker(str(tmp_path / "cat.png"), open_student(tmp_path / "net.onnx"))
    assert worn.anchors == {"left_eye": 40 + 20j, "nose": 30 + 30j}


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["face=wear"], "name a sketch"),
        (["wear=a.png"], "add face=wear"),
        (["face=wear", "wear=none.png"], "wear=none.png"),
    ],
)
def test_wearing_nothing_is_said(shipped_students, capsys, typed, said):
    save("photo.png")
    assert run(stylize, "photo.png", *typed) == 1
    assert said in capsys.readouterr().err
    assert not Path("stylized").exists()


def test_a_video_wears_it_too(shipped_students, found, monkeypatch, capsys):
    own_hat()
    frames = [np.full((140, 160, 3), 120, np.uint8)] * 4
    make("clip.mp4", frames)
    faces = iter([[face()], [face()], [], []])
    monkeypatch.setattr(portraits, "BlazeFace", lambda: lambda _photo: next(faces))
    assert run(stylize, "clip.mp4", "face=wear", "overlay=hat.png", "crf=1") == 0
    assert "'clip.mp4': no face found in 2 of 4 frames" in capsys.readouterr().err
    red = [frame[50, 60, 0] for frame in decoded("stylized/clip-hayao.mp4")]
    expected = [255, 255, 120 + 0.8 * 135, 120 + 0.6 * 135]
    np.testing.assert_allclose(red, expected, atol=12)


# The detector


def test_blazeface_sees_what_the_tests_own_decoder_sees():
    astronaut = data.astronaut()
    (one,) = BlazeFace()(astronaut)
    (other,) = blazeface.faces(Image.fromarray(astronaut), 0.6)
    left, top, right, bottom = 512 * other.box
    assert (one.box.left, one.box.top) == pytest.approx((left, top), abs=3)
    assert (one.box.width, one.box.height) == pytest.approx((right - left, bottom - top), abs=4)
    # Looked at closer, the points are exact to two pixels: eyes, nose and mouth, by eye.
    seen = [203 + 103j, 246 + 104j, 222 + 128j, 223 + 150j]
    off = [abs(at - place) for at, place in zip(one.marks.values(), seen, strict=False)]
    assert max(off) < 4


def test_a_small_face_is_found_in_parts_of_the_photo():
    page = Image.new("RGB", (1100, 900), "gray")
    page.paste(Image.fromarray(data.astronaut()).resize((420, 420)), (600, 400))
    (one,) = BlazeFace()(np.asarray(page))
    place = 600 + 400j + (224 + 104j) * 420 / 512
    assert abs((one.marks["left_eye"] + one.marks["right_eye"]) / 2 - place) < 5
    assert BlazeFace()(data.coffee()) == []
