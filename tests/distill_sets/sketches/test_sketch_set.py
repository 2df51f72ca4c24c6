"""distill.prepare recipe=pix2pix: whole sets of sketches and photos, on drawn pictures."""

import json
import os
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw
from skimage.data import astronaut

from distill.data.faces import BlazeFace
from distill.data.pairs import find_pairs
from distill.data.photo_table import SIDES
from distill.prepare import __main__ as prepare
from distill.train import __main__ as train
from distill_sets.sketches.lines import HED
from support.commands import run
from support.saliency_networks import brightness

SMALL = ["recipe=pix2pix", "sketch.size=64", "label.workers=0", "data.val_fraction=0.4"]
SET = Path("data/sketches/photos-64")
HEAD = (200, 120, 90)
SIDE, FINE = 160, 4


@cache
def head(seed, degrees=0.0):
    """A cat's head, turned: a disc with two ears and two eyes, and its nine points."""
    rng = np.random.default_rng(seed)
    side = FINE * SIDE  # drawn large, since Pillow draws on whole pixels
    middle, unit = rng.uniform(0.47, 0.53, 2) * side, rng.uniform(0.9, 1.1) * side / 4.5
    turn = np.exp(1j * np.radians(degrees))
    colours = rng.integers((0, 0, 0), (60, 120, 255), (6, 6, 3)).astype(np.uint8)
    page = Image.fromarray(colours).resize((side, side), Image.Resampling.BICUBIC)

    def at(x, y):
        spot = (x + 1j * y) * unit * turn
        return float(middle[0] + spot.real), float(middle[1] + spot.imag)

    draw = ImageDraw.Draw(page)
    draw.circle(at(0, 0.1), unit * 1.1, HEAD)
    ears = [[at(s * 0.4, -0.8), at(s * 0.9, -1.5), at(s * 1.0, -0.5)] for s in (-1, 1)]
    for ear in ears:
        draw.polygon(ear, HEAD)
    eyes = [at(-0.5, -0.1), at(0.5, -0.1)]
    for eye in eyes:
        draw.circle(eye, unit * 0.15, (250, 220, 20))
    points = [*eyes, at(0, 0.6), *ears[0], *ears[1]]
    return page.reduce(FINE), [(x / FINE, y / FINE) for x, y in points]


@pytest.fixture
def cats(tmp_path, monkeypatch):
    """A working folder with eight photos of cats."""
    monkeypatch.chdir(tmp_path)
    Path("photos").mkdir()
    for seed in range(8):
        add(seed, degrees=9 * seed - 30)
    return tmp_path


def add(seed, **options):
    page, points = head(seed, **options)
    path = Path(f"photos/cat {seed}.png")
    page.save(path)
    numbers = " ".join(f"{x:.2f} {y:.2f}" for x, y in points)
    Path(f"{path}.cat").write_text(f"9 {numbers} ")
    return path


def make(*more):
    return run(prepare, "photos=photos", *SMALL, *more)


def files(root=SET):
    """Every picture of a set and its bytes."""
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.glob("*/*/*.png"))}


def picture(kind, stem, root=SET):
    (path,) = root.glob(f"*/{kind}/{stem}-*.png")
    return np.asarray(Image.open(path))


def skipped(root=SET):
    return dict(line.split("\t") for line in (root / "skipped.tsv").read_text().splitlines()[1:])


def centre(mask):
    rows, columns = np.nonzero(mask)
    return columns.mean() + 0.5, rows.mean() + 0.5


def yellow(picture):
    return (picture[..., 0] > 180) & (picture[..., 1] > 170) & (picture[..., 2] < 110)


def test_a_set_that_training_knows(cats, capsys):
    assert make("sketch.points=cat", "sketch.face.side=4") == 0
    assert "8 new" in capsys.readouterr().out
    pairs = find_pairs(SET, None, 0.1, 0)
    assert sum(map(len, pairs.values())) == 8
    for side in SIDES:
        for pair in pairs[side]:
            outline, photo = pair.read()
            assert outline.size == photo.size == (64, 64)
            ink = np.asarray(outline)
            assert (ink == ink[..., :1]).all()
            assert ink.max() == 255
            assert 0.02 < (ink < 128).mean() < 0.4
    manifest = json.loads((SET / "dataset.json").read_text())
    assert manifest["recipe"]["recipe"] == "pix2pix"
    assert manifest["counts"]["skipped"] == 0
    assert Image.open(SET / "preview.png").size == (6 * 68 + 4, 18 + 8 * 68 + 4)


def test_eyes_come_out_level_within_half_a_pixel(cats):
    """Half a pixel of the square, in which one of the photo is 2.4 wide."""
    assert make("sketch.points=cat", "sketch.face.side=3", "sketch.size=256",
                "sketch.face.least=20", f"data.root={SET}") == 0  # fmt: skip
    for seed in range(8):
        eyes = yellow(picture("B", f"cat_{seed}"))
        left, right = centre(eyes[:, :128]), centre(np.pad(eyes[:, 128:], ((0, 0), (128, 0))))
        assert left[1] == pytest.approx(right[1], abs=0.5)
        assert left == pytest.approx((256 / 3, 0.45 * 256), abs=0.75)
        assert right == pytest.approx((512 / 3, 0.45 * 256), abs=0.75)


def test_what_cannot_be_used_is_listed(cats, capsys):
    Path("photos/cat 0.png.cat").unlink()
    Path("photos/cat 1.png.cat").write_text("9 1 2 3")
    Path("photos/cat 2.png").write_bytes(b"no")
    Path("photos/cat 3.png.cat").write_text("9 60 60 80 60 70 80" + " 1 1" * 6)
    least = ("sketch.face.least=20.5", "data.test_fraction=0")
    assert make("sketch.points=cat", *least) == 0
    listed = skipped()
    assert listed == {
        "'cat 0.png'": "no points: there is no 'cat 0.png.cat'",
        "'cat 1.png'": "no points: 'cat 1.png.cat' is not 9 and nine times x y",
        "'cat 2.png'": "not a picture, or of an unknown kind",
        "'cat 3.png'": "the face is too small: 20 pixels between the eyes",
    }
    assert len(files()) == 8
    assert f"{len(listed)} photos skipped" in capsys.readouterr().out


def test_a_teacher_leaves_sketches_alone(cats, capsys):
    assert make() == 0
    capsys.readouterr()
    words = ["photos=photos", f"data.root={SET}", "style.resolution=64", "label.workers=0"]
    assert run(prepare, *words) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith(f"error: {SET}: made with other settings (style None there")


def test_a_teacher_s_set_is_left_alone(cats, capsys):
    SET.mkdir(parents=True)
    manifest = {"photos": "x", "style": "toon", "size": 64}
    (SET / "dataset.json").write_text(json.dumps({"recipe": manifest, "counts": None}))
    assert make() == 1
    assert "holds the pairs of a teacher" in capsys.readouterr().err


def test_persons_stay_on_one_side(here):
    assert make() == 0
    sides = {side: {p.name[:8] for p in (SET / side / "A").iterdir()} for side in SIDES}
    assert all(sides.values())
    assert sum(map(len, sides.values())) == len(set().union(*sides.values())) == 8


def masked(seed, kind):
    """A photo and a mask of its head, in a folder or its own alpha."""
    page = head(seed)[0].copy()
    mask = (np.abs(np.asarray(page).astype(int) - HEAD) < 3).all(-1)
    alpha = Image.fromarray((mask * 255).astype(np.uint8))
    if kind == "alpha":
        page.putalpha(alpha)
    else:
        Path("masks").mkdir(exist_ok=True)
        alpha.save(f"masks/cat {seed}.png")
    page.save(f"photos/cat {seed}.png")


@pytest.mark.parametrize("kind", ["alpha", "masks"])
@pytest.mark.parametrize("rgba", [False, True])
def test_the_background_goes(cats, kind, rgba):
    for seed in range(8):
        masked(seed, kind)
    assert make(f"sketch.mask={kind}", f"sketch.rgba={rgba}", "sketch.stroke.least=10") == 0
    for seed in range(8):
        found = picture("B", f"cat_{seed}")
        assert found.shape == (64, 64, 4 if rgba else 3)
        corner, middle = found[2, 2], found[40, 32]
        assert abs(middle[:3].astype(int) - HEAD).max() <= 1
        if rgba:
            assert (corner[3], middle[3]) == (0, 255)
            # Nothing of the background's green seeps into the head's rim.
            rim = found[(found[..., 3] > 30) & (found[..., 3] < 225)]
            assert abs(np.median(rim[:, :3].astype(int) - HEAD, 0)).max() <= 3
        else:
            assert corner.min() == 255
        assert (picture("A", f"cat_{seed}") < 128).any()


def test_a_mask_that_keeps_too_little_is_dropped(cats):
    for seed in range(8):
        masked(seed, "masks")
    Image.new("L", (160, 160), 12).save("masks/cat 4.png")
    Path("masks/cat 6.png").unlink()
    assert make("sketch.mask=masks") == 0
    assert skipped() == {
        "'cat 4.png'": "the mask keeps 4.7% of the square, less than 10.0%",
        "'cat 6.png'": "no mask of the name 'cat 6'",
    }
    Image.new("L", (160, 160), 128).save("masks/cat 4.png")  # a person mended it
    assert make("sketch.mask=masks") == 0
    assert list(skipped()) == ["'cat 6.png'"]


def test_opaque_photos_have_no_alpha(cats, capsys):
    assert make("sketch.mask=alpha") == 1
    assert set(skipped().values()) == {"nothing in it is transparent"}
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == f"error: {SET}: no train photo could be used; see {SET / 'skipped.tsv'}"


def test_another_network_s_masks_make_another_set(cats, capsys):
    brightness(Path("a b.onnx"))
    mask = ["sketch.mask=a b.onnx", "sketch.saliency.norm=none", "sketch.saliency.size=32"]
    assert make(*mask) == 0
    shutil.copy("a b.onnx", "same.onnx")
    assert make("sketch.mask=same.onnx", *mask[1:]) == 0
    brightness(Path("a b.onnx"), scale=0.9)
    assert make(*mask) == 1
    assert "sketch.mask " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("chosen", "said"),
    [(["sketch.mask=bad"], "sketch.mask=bad: not a readable ONNX file"),
     (["sketch.outline=hed", "sketch.hed.weights=bad"], "bad: it holds more than tensors")],
)  # fmt: skip
def test_networks_that_cannot_be_used_end_in_one_line_and_leave_nothing(cats, capsys, chosen, said):
    Path("bad").write_bytes(b"no")
    assert make(*chosen, "label.workers=1") == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {said}")
    assert not SET.exists()


def test_marks_are_drawn(cats):
    assert make("sketch.points=cat", "sketch.face.side=3", "sketch.marks=true") == 0
    unit = 64 / 3
    for seed in range(8):
        ink = picture("A", f"cat_{seed}")[..., 0] < 128
        for eye in (unit, 2 * unit):
            y, x = round(0.45 * 64 - 0.5), round(eye - 0.5)
            assert not ink[y - 1 : y + 2, x - 1 : x + 2].any()
            assert ink[y, x : x + 7].any()
            assert ink[y - 6 : y, x].any()


@pytest.mark.usefixtures("no_downloads")
def test_hed_s_weights_that_are_not_there(cats, capsys):
    assert make("sketch.outline=hed") == 1
    said = capsys.readouterr().err
    assert "weights file network-bsds500.pth: cannot be downloaded" in said
    assert "sketch.hed.weights=FILE" in said


WRONG = {
    "sketch.marks=true": "sketch.marks=true: needs sketch.points=cat or faces",
    "sketch.rgba=true": "sketch.rgba=true: needs sketch.mask=",
    "sketch.canny.low=0.5": "sketch.canny.low=0.5: above sketch.canny.high=0.3",
    "sketch.mask=gone": "sketch.mask=gone: no such file or folder, and not alpha",
    "sketch.points=dog": "sketch.points='dog': input should be 'cat' or 'faces'",
    "sketch.outlin=hed": "sketch.outlin: no such setting; did you mean sketch.outline?",
    "recipe=pixpix": "recipe=pixpix: unknown; there are distill, pix2pix, cyclegan, picture",
    "drop=gone": "drop=gone: no such file",
    "photos=gone": "photos=gone: no such folder",
}


@pytest.mark.parametrize("override", WRONG)
def test_wrong_settings_end_in_one_line(cats, capsys, override):
    assert make(override) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {WRONG[override]}")
    assert not Path("data").exists()


def test_yunet_s_points_on_real_faces(assets, tmp_path, monkeypatch):
    detector = os.environ.get("DISTILL_YUNET")
    if not detector:
        pytest.skip("DISTILL_YUNET names no face_detection_yunet_2023mar.onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISTILL_WEIGHTS", str(Path(detector).parent))
    Path("photos").mkdir()
    for path in sorted((assets / "photos/faces").iterdir())[:6]:
        shutil.copy(path, "photos")
    Image.new("RGB", (200, 200), "grey").save("photos/none.png")
    assert make("sketch.points=faces", "sketch.marks=true") == 0
    assert skipped() == {"'none.png'": "no face in it"}
    assert len(files()) == 12


@pytest.mark.slow
@pytest.mark.parametrize("outline", ["canny", "hed"])
def test_sketches_of_faces_by_the_package_s_own_detector_are_learnt_from(
    tmp_path, monkeypatch, outline
):
    """Key points, outlines, a set and a short training: nothing stands in for anything but HED's
    weights, which are random."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISTILL_WEIGHTS", raising=False)
    monkeypatch.setenv("DISTILL_CACHE", str(tmp_path / "cache"))
    Path("photos").mkdir()
    woman = Image.fromarray(astronaut())
    for number, turn in enumerate((-20, 0, 15, 30)):  # elsewhere each, or they were near-duplicates
        noise = np.random.default_rng(number).integers(0, 256, (5, 5, 3), np.uint8)
        page = Image.fromarray(noise).resize((512, 512), Image.Resampling.BICUBIC)
        turned = woman.rotate(turn, Image.Resampling.BICUBIC, center=(224, 110))
        page.paste(turned.crop((114, 0, 334, 220)), (90 * (number % 2), 270 * (number // 2)))
        page.save(f"photos/{number}.png")
    Image.new("RGB", (200, 200), "grey").save("photos/none.png")
    chosen = ["sketch.points=faces", "sketch.marks=true", f"sketch.outline={outline}"]
    if outline == "hed":
        torch.save(HED().state_dict(), "hed.pth")
        chosen.append("sketch.hed.weights=hed.pth")
    assert make(*chosen) == 0
    kept = json.loads((SET / "dataset.json").read_text())["recipe"]
    assert ("sketch.hed" in kept) == (outline == "hed") == ("sketch.canny.low" not in kept)
    assert len(kept.get("sketch.hed", 64 * "0")) == 64  # the SHA-256 of its weights
    assert skipped() == {"'none.png'": "no face in it"}
    assert len(files()) == 8
    larger = ["sketch.size=256", "data.root=large", *chosen[:2]]
    assert make(*larger) == 0
    for path in Path("large").rglob("B/*.png"):  # however she leans, her eyes are level
        (face,) = BlazeFace()(np.asarray(Image.open(path).convert("RGB")))
        for mark, x in (("right_eye", 0.4), ("left_eye", 0.6)):
            assert abs(face.marks[mark] / 256 - complex(x, 0.45)) < 0.02
    network = ["generator.build.encoder=0.125", "generator.build.decoder=0.125"]
    small = ["data.size=36", "data.crop_size=32", "data.workers=0", "discriminator.width=0.125"]
    length = ["trainer.max_steps=2", "distance=none"]
    words = ["recipe=pix2pix", f"data.root={SET}", *network, *small, *length]
    assert run(train, *words) == 0
    assert Path("runs/pix2pix-photos-64/checkpoints/last.ckpt").is_file()
