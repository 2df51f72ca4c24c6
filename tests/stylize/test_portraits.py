"""face=crop|paste|off: faces cropped as students learnt them, stylised, and pasted back."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skimage import data

from distill.data import faces
from distill.data.faces import YUNET, Box, Face
from distill.stylize import __main__ as stylize
from distill.stylize import portraits
from distill.stylize.portraits import SHARE, Square
from support.commands import run
from support.stylize_setup import close, files, picture, pixels, put


def astronaut():
    return Image.fromarray(data.astronaut())


@pytest.fixture
def found(monkeypatch):
    """A detector that says what a test wants it to."""
    boxes: list[Box] = []
    monkeypatch.setattr(portraits, "lbp_faces", lambda _photo: [Face(box) for box in boxes])
    return boxes


# Squares


def test_a_box_becomes_the_square_that_it_is_that_share_of():
    assert portraits.square(Box(40, 60, 50, 50), 0.5) == Square(35, 15, 100)
    assert portraits.square(Box(40, 60, 50, 30), 0.5) == Square(25, 15, 100)
    assert portraits.square(Box(40, 60, 50, 50), 0.5, scale=2) == Square(70, 30, 200)
    assert portraits.square(Box(0, 0, 50, 50), 0.5) == Square(-25, -25, 100)


def test_beyond_the_border_the_picture_is_mirrored():
    photo = picture(20, 14, "RGBA")
    cut = np.asarray(portraits.crop(photo, Square(-7, 5, 30)))
    wide = np.pad(np.asarray(photo), ((0, 21), (7, 3), (0, 0)), mode="symmetric")
    assert (cut == wide[5:35]).all()
    inside = portraits.crop(photo, Square(3, 2, 9))
    assert (np.asarray(inside) == np.asarray(photo)[2:11, 3:12]).all()


@pytest.mark.campaign
def test_a_square_of_the_training_photos(assets):
    """LFW's centre 80 %: what the default detector's box is widened to, in most of 40 photos."""
    shares = []
    for path in sorted((assets / "photos/faces").glob("*.jpg"))[7::115]:
        pixels_ = np.asarray(Image.open(path).convert("RGB"))
        if found := faces.lbp_faces(pixels_):
            square = portraits.square(found[0].box, SHARE["lbp"])
            shares.append(square.side / (0.8 * len(pixels_)))
    assert len(shares) >= 30
    assert 0.9 < np.median(shares) < 1.1


def test_large_photos_are_looked_at_in_a_smaller_size():
    seen = []

    def find(photo):
        seen.append(photo.shape)
        return [Face(Box(100, 200, 100, 100)), Face(Box(0, 0, 10, 10))]

    squares = portraits.squares(Image.new("RGBA", (4096, 2048)), find, "lbp")
    assert seen == [(512, 1024, 3)]
    assert squares == [portraits.square(Box(400, 800, 400, 400), SHARE["lbp"])]
    everyone = portraits.squares(Image.new("RGB", (400, 300)), find, "lbp", everyone=True)
    assert len(everyone) == 2


# As a command


def test_crop_is_the_negative_of_the_square(shipped_students, found):
    found[:] = [Box(100, 150, 113, 113)]
    put("photo.png", picture(512, 400))
    assert run(stylize, "photo.png", "face=crop") == 0
    square = portraits.square(found[0], SHARE["lbp"])
    with Image.open("photo.png") as photo:
        expected = 255 - np.asarray(portraits.crop(photo, square, 256)).astype(int)
    assert close(pixels("stylized/photo-hayao.png"), expected, 1)
    assert run(stylize, "photo.png", "face=crop", "size=100") == 0
    assert pixels("stylized/photo-hayao.png").shape == (100, 100, 3)
    assert run(stylize, "photo.png", "face=crop", "upscale=tiles") == 0
    assert pixels("stylized/photo-hayao.png").shape == (200, 200, 3)


def test_paste_stylises_the_face_and_leaves_the_rest(shipped_students, found):
    found[:] = [Box(100, 150, 113, 113)]
    put("photo.png", picture(512, 400))
    assert run(stylize, "photo.png", "face=paste") == 0
    photo, stylised = pixels("photo.png"), pixels("stylized/photo-hayao.png")
    left, top, side, _ = portraits.square(found[0], SHARE["lbp"])
    rows, columns = np.mgrid[:400, :512]
    away = np.hypot(rows + 0.5 - top - side / 2, columns + 0.5 - left - side / 2) / (side / 2)
    assert (stylised[away >= 1] == photo[away >= 1]).all()
    core = away <= portraits.SOFT
    assert np.abs(stylised - (255 - photo))[core].max() <= 3  # made at 256, put back at 200
    # No seam: no step between neighbours is larger than in the photo and its negative but for
    # what the fading itself adds.
    steps = np.abs(np.diff(stylised, axis=1)).max()
    assert steps <= np.abs(np.diff(photo, axis=1)).max() + 255 * 1.5 / (side / 2 * 0.4) + 2


def by(offset):
    """A network that adds what it is given, by place in the square."""
    return lambda part: Image.fromarray((np.asarray(part, int) + offset).astype(np.uint8))


def test_poisson_takes_away_what_is_smooth_and_keeps_the_rest():
    """What is harmonic vanishes: a constant, a ramp, a saddle, whatever the colours around."""
    photo = Image.fromarray(np.asarray(picture(100, 90)) // 2 + 60)
    part = Square(20, 15, 41)
    rows, columns = np.mgrid[-20:21, -20:21][..., None]
    for offset in (40, [30, -20, 5], rows + columns, (rows**2 - columns**2) // 10):
        made = portraits.paste(photo, [part], by(offset), "poisson")
        assert np.abs(np.asarray(made, int) - np.asarray(photo)).max() <= 1
    dot = 40 * ((rows == 0) & (columns == 0))
    made = np.asarray(portraits.paste(photo, [part], by(dot + 25), "poisson"), int)
    change = made - np.asarray(photo)
    assert (change[35, 40] == 40).all()
    assert np.abs(change[35, 41:]).max() <= 1


def test_poisson_has_the_photo_at_its_sides_and_the_network_s_gradients():
    """Against the equations themselves, solved as one matrix."""
    numbers = np.random.default_rng(0)
    photo, stylised = numbers.integers(90, 160, (2, 12, 9, 3)).astype(np.uint8)
    made = portraits.seamless(*map(Image.fromarray, (stylised, photo)))
    inside = np.zeros((12, 9), bool)
    inside[1:-1, 1:-1] = True
    place = np.arange(12 * 9).reshape(12, 9)
    matrix, right = np.eye(12 * 9), photo.reshape(-1, 3).astype(float)
    for at in place[inside]:
        around = [at - 9, at + 9, at - 1, at + 1]
        matrix[at, [at, *around]] = 4, -1, -1, -1, -1
        right[at] = matrix[at] @ stylised.reshape(-1, 3)
    expected = np.linalg.solve(matrix, right).reshape(12, 9, 3)
    assert expected.min() > 0
    assert expected.max() < 255
    np.testing.assert_allclose(np.asarray(made), expected, atol=0.51)
    np.testing.assert_array_equal(np.asarray(made)[~inside], photo[~inside])


def test_paste_keeps_transparency(shipped_students, found):
    found[:] = [Box(5, 5, 20, 20)]
    photo = picture(60, 50, "RGBA")
    alpha = np.full((50, 60), 255, np.uint8)
    alpha[:, 40:] = 0
    photo.putalpha(Image.fromarray(alpha))
    put("photo.png", photo)
    assert run(stylize, "photo.png", "face=paste") == 0
    assert (pixels("stylized/photo-hayao.png", "RGBA")[..., 3] == alpha).all()


def test_all_faces_each_a_file(shipped_students, found):
    found[:] = [Box(100, 100, 60, 60), Box(20, 300, 40, 40)]
    put("photo.png", picture(512, 400))
    assert run(stylize, "photo.png", "face=crop") == 0
    assert files("stylized") == ["photo-hayao.png"]
    assert run(stylize, "photo.png", "face=crop", "faces=all") == 0
    assert files("stylized") == ["photo-hayao-2.png", "photo-hayao.png"]
    assert run(stylize, "photo.png", "face=paste", "faces=all", "-o", "both.png") == 0
    changed = (pixels("both.png") != pixels("photo.png")).any(-1)
    assert changed[130, 130]
    assert changed[40, 320]
    assert not changed[300, 300]


def test_a_further_crop_is_not_written_over_a_picture(shipped_students, found, capsys):
    found[:] = [Box(10, 10, 20, 20), Box(5, 5, 9, 9)]
    put("a.png")
    put("b-2.png")
    before = Path("b-2.png").read_bytes()
    typed = ("face=crop", "faces=all", "-o", "b.png")
    assert run(stylize, "a.png", *typed) == 0  # no picture of this run
    Path("b-2.png").write_bytes(before)
    put("b-hayao-2.png")
    before = Path("b-hayao-2.png").read_bytes()
    put("b.png")
    assert run(stylize, "b.png", "b-hayao-2.png", "face=crop", "faces=all", "-o", "./") == 1
    assert "crop 2 would be written over 'b-hayao-2.png'" in capsys.readouterr().err
    assert Path("b-hayao-2.png").read_bytes() == before


def test_no_face_is_said_and_the_whole_picture_stylised_or_none_of_it(shipped_students, capsys):
    Image.fromarray(data.coffee()).save("cup.png")
    for typed in (["face=crop"], ["face=paste"], ["face=paste", "no_face=photo"]):
        assert run(stylize, "cup.png", *typed) == 0
        stays = len(typed) == 2
        said = "it stays" if stays else "the whole picture is stylised"
        assert capsys.readouterr().err == f"'cup.png': no face found; {said}\n"
        wanted = pixels("cup.png") if stays else 255 - pixels("cup.png")
        assert close(pixels("stylized/cup-hayao.png"), wanted, 0 if stays else 1)


def test_the_astronaut_s_face(shipped_students):
    """By the real detector: her face is stylised, rocket and flag are not."""
    astronaut().save("photo.png")
    assert run(stylize, "photo.png", "face=paste") == 0
    changed = np.abs(pixels("stylized/photo-hayao.png") - pixels("photo.png")).max(-1)
    assert changed[90:150, 200:245].mean() > 40
    assert changed[:, :60].max() == changed[:, 380:].max() == changed[300:].max() == 0


def test_compare_in_each_mode(shipped_students, found, capsys):
    found[:] = [Box(10, 10, 20, 20)]
    put("photo.png", picture(80, 60))
    assert run(stylize, "photo.png", "face=crop", "compare=true") == 0
    assert pixels("stylized/photo-hayao-compare.png").shape == (256, 512, 3)
    assert run(stylize, "photo.png", "face=paste", "compare=true") == 0
    both = pixels("stylized/photo-hayao-compare.png")
    assert (both[:, :80] == pixels("photo.png")).all()
    assert (both[:, 80:] != both[:, :80]).any()
    said = capsys.readouterr().err.splitlines()
    assert {line for line in said if "compare" in line} == {
        "compare=true: without the teacher, animegan2_hayao.pt is not available; put it into a "
        "folder that DISTILL_WEIGHTS names"
    }


def test_the_teacher_stands_beside_its_student(shipped_students):
    """toon's teacher needs no weights: the third column is its own output for the photo."""
    import torch

    from distill.core.images import to_tensor
    from distill_drawings.toon import Toon

    put("photo.png", picture(100, 70))
    assert run(stylize, "photo.png", "style=toon", "compare=true") == 0
    page = pixels("stylized/photo-toon-compare.png")
    assert page.shape == (70, 300, 3)
    with Image.open("photo.png") as photo, torch.inference_mode():
        wide = np.pad(np.asarray(photo), ((60, 60), (60, 60), (0, 0)), mode="symmetric")
        own = Toon()(to_tensor(Image.fromarray(wide))[None])[0, :, 60:-60, 60:-60]
    stylised = (own * 255).permute(1, 2, 0).numpy()
    middle = np.abs(page[20:-20, 220:-20] - stylised[20:-20, 20:-20])
    assert np.median(middle) <= 1


def test_a_model_of_one_s_own_has_no_teacher(shipped_students, capsys):
    put("photo.png")
    assert run(stylize, "photo.png", "model=zoo/hayao.onnx", "compare=true") == 0
    assert capsys.readouterr().err == ""
    assert pixels("stylized/photo-hayao-compare.png").shape == (40, 96, 3)


def test_yunet_without_its_file(shipped_students, no_downloads, capsys):
    put("photo.png")
    assert run(stylize, "photo.png", "face=crop", "detector=yunet") == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: weights file {YUNET.name}: cannot be downloaded")
    assert "DISTILL_WEIGHTS" in said
    assert len(said.splitlines()) == 1
    assert run(stylize, "photo.png", "detector=yunet") == 0  # not wanted: not looked for
