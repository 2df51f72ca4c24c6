"""teacher=folder: drawings of the photos' names, cut as their photos are."""

import json
import pickle
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from distill.core.errors import DistillError
from distill.data.photos import find_all, find_photos
from distill.eval_fid import __main__ as eval_fid
from distill.export import __main__ as export
from distill.models.teachers.drawings import FolderTeacher
from distill.prepare import __main__ as prepare
from distill.prepare.pair_maker import PairStore
from distill.prepare.set_builder import build_set
from distill.prepare.teacher_pass import DrawingPass
from distill.stylize import __main__ as stylize
from support.commands import SMALL, go, run
from support.labelling import MANIFEST, add, hashes, picture, stamps
from support.refusals import refusal
from support.shards_by_teacher import make_shards

SIZE = (72, 64)


def draw(folder: Path, *seeds, suffix=".png", scale=1.0, **options):
    """The negatives of the photos of these seeds, perhaps of another size."""
    folder.mkdir(parents=True, exist_ok=True)
    size = tuple(round(side * scale) for side in SIZE)
    for seed in seeds:
        negative = ImageOps.invert(picture(seed)).resize(size, Image.Resampling.BICUBIC)
        negative.save(folder / f"{seed}{suffix}", **options)


def make(photos, root, drawings, manifest=MANIFEST, workers=0, **options):
    found = photos if isinstance(photos, list) else find_photos(photos)
    maker = DrawingPass(FolderTeacher(str(drawings)), manifest, workers)
    return build_set(found, maker, manifest, PairStore(root, maker.folders), **options)


def pairs(root: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Photo and drawing of every pair, by the name of the pair's file."""
    return {
        path.stem: tuple(
            np.asarray(Image.open(path.parents[1] / side / path.name)).astype(int)
            for side in ("photo", "stylized")
        )
        for path in root.glob("*/stylized/*.png")
    }


def names(root: Path) -> set[str]:
    return {name.rsplit("-", 1)[0] for name in pairs(root)}


message = partial(refusal, make)


@pytest.mark.parametrize("workers", [0, 1])
def test_each_photo_is_paired_with_the_drawing_of_its_name(tmp_path, workers):
    add(tmp_path / "photos", *range(6))
    draw(tmp_path / "drawn", *range(6))
    report = make(tmp_path / "photos", tmp_path / "set", tmp_path / "drawn", workers=workers)
    assert (report.made, report.skipped) == (6, {})
    found = pairs(tmp_path / "set")
    assert len(found) == 6
    for photo, drawing in found.values():
        assert np.abs(drawing - (255 - photo)).max() <= 1


def test_whole_drawings_have_their_photos_size(tmp_path):
    """Photos of 72×64, and drawings twice as large, at a long side of 64."""
    add(tmp_path / "photos", *range(6))
    draw(tmp_path / "drawn", *range(6), scale=2.0)
    make(tmp_path / "photos", tmp_path / "set", tmp_path / "drawn", replace(MANIFEST, sizes=(64,)))
    found = {name: both for name, both in pairs(tmp_path / "set").items() if "-s" in name}
    assert {name[-4:] for name in found} == {"-s64"}
    for photo, drawing in found.values():
        assert photo.shape == drawing.shape == (64, 64, 3)
        assert np.abs(drawing - (255 - photo)).mean() < 3


def test_suffixes_do_not_matter_and_subfolders_do(tmp_path):
    add(tmp_path / "photos", 0, 1)
    add(tmp_path / "photos/deep", 2, 3, 4)
    draw(tmp_path / "drawn", 0, suffix=".webp", lossless=True)
    draw(tmp_path / "drawn", 1, 4, suffix=".tif")  # 4 is not of deep/4
    draw(tmp_path / "drawn/deep", 2, suffix=".BMP")
    draw(tmp_path / "drawn/deep", 3, suffix=".jpg", quality=95)
    report = make(tmp_path / "photos", tmp_path / "set", tmp_path / "drawn")
    assert names(tmp_path / "set") == {"0", "1", "2", "3"}
    assert report.skipped == {"deep/4.png": "no drawing of its name"}
    assert report.counts["skipped"] == 1


def test_photos_without_a_drawing_take_no_place(tmp_path):
    """Of 40 photos 4 are drawn: split among themselves, so that no side is empty."""
    add(tmp_path / "photos", *range(40))
    draw(tmp_path / "drawn", 3, 11, 19, 30)
    report = make(tmp_path / "photos", tmp_path / "set", tmp_path / "drawn")
    assert names(tmp_path / "set") == {"3", "11", "19", "30"}
    assert report.counts["train"] > 0 < report.counts["val"]
    assert len(report.skipped) == 36
    before = stamps(tmp_path / "set")
    assert make(tmp_path / "photos", tmp_path / "set", tmp_path / "drawn").made == 0
    assert stamps(tmp_path / "set") == before


def test_drawings_that_come_later_join_the_set(tmp_path):
    add(tmp_path / "photos", *range(6))
    draw(tmp_path / "drawn", 0, 1, 2)
    make(tmp_path / "photos", tmp_path / "set", tmp_path / "drawn")
    before = hashes(tmp_path / "set")
    draw(tmp_path / "drawn", 4)
    shutil.move(tmp_path / "drawn", tmp_path / "moved")
    report = make(tmp_path / "photos", tmp_path / "set", tmp_path / "moved")
    assert (report.made, len(report.skipped)) == (1, 2)
    after = hashes(tmp_path / "set")
    assert {name: after[name] for name in before if name.endswith(".png")}.items() <= before.items()


def test_a_changed_drawing_is_said_but_not_before_it_was_used(tmp_path):
    """Killed between the list and the pair, the list is of the older drawing."""
    add(tmp_path / "photos", *range(4))
    draw(tmp_path / "drawn", *range(4))
    make(tmp_path / "photos", tmp_path / "set", tmp_path / "drawn")
    (gone,) = (tmp_path / "set").glob("*/stylized/2-*.png")
    gone.unlink()
    picture(9).save(tmp_path / "drawn/2.png")
    assert make(tmp_path / "photos", tmp_path / "set", tmp_path / "drawn").made == 1
    assert make(tmp_path / "photos", tmp_path / "set", tmp_path / "drawn").made == 0
    picture(8).save(tmp_path / "drawn/2.png")
    before = stamps(tmp_path / "set")
    said = message(tmp_path / "photos", tmp_path / "set", tmp_path / "drawn")
    assert "changed since: 1 drawing, the first is that of '2.png'" in said
    assert stamps(tmp_path / "set") == before


def test_of_another_size_it_is_cut_where_the_photo_is(tmp_path):
    """A ramp shows the place: twice and 1.375 times as large, the cut is the same to 2 levels."""
    for scale in (1, 2, 1.375):
        folder = tmp_path / f"x{scale}"
        folder.mkdir()
        for seed in range(4):
            width, height = 200 + 40 * seed, 160
            x = np.linspace(0, 250, round(width * scale))[None, :, None]
            y = np.linspace(0, 250, round(height * scale))[:, None, None]
            ramp = np.concatenate(np.broadcast_arrays(x, y, (x + y) / 2), 2).round()
            Image.fromarray(ramp.astype(np.uint8)).save(folder / f"{seed}.png")
    manifest = replace(MANIFEST, views=3, colour=0.0, crop=0.7)
    for scale in (2, 1.375):
        root = tmp_path / f"set{scale}"
        make(tmp_path / "x1", root, tmp_path / f"x{scale}", manifest)
        found = pairs(root)
        assert len(found) > 6
        for photo, drawing in found.values():
            inner = np.abs(drawing - photo)[2:-2, 2:-2]  # the filter bends the ramp at its ends
            assert inner.max() <= 2
            assert inner.mean() < 1


def test_views_change_both_alike(tmp_path):
    """Of drawings that are the photos themselves, all views are equal pairs, in other colours."""
    add(tmp_path / "photos", *range(4))
    shutil.copytree(tmp_path / "photos", tmp_path / "drawn")
    manifest = replace(MANIFEST, views=4, colour=0.3)
    make(tmp_path / "photos", tmp_path / "set", tmp_path / "drawn", manifest)
    found = pairs(tmp_path / "set")
    assert len(found) > 8
    assert all(np.array_equal(photo, drawing) for photo, drawing in found.values())


def test_another_shape_and_what_cannot_be_read_are_skipped_and_named(tmp_path):
    add(tmp_path / "photos", *range(8))
    draw(tmp_path / "drawn", 0, 1, 2, 5, 6, 7, scale=1.5)
    Image.new("RGB", (100, 100)).save(tmp_path / "drawn/3.png")
    (tmp_path / "drawn/4.png").write_bytes(b"no picture")
    report = make(tmp_path / "photos", tmp_path / "set", tmp_path / "drawn")
    unread = report.skipped.pop("4.png")
    assert unread.startswith("its drawing '4.png': not a picture")
    assert report.skipped == {
        "3.png": "its drawing is 100×100, which does not fit 72×64: it must show all of the photo"
    }
    draw(tmp_path / "drawn", 3, 4)  # mended
    assert make(tmp_path / "photos", tmp_path / "set", tmp_path / "drawn").skipped == {}


def test_what_cannot_be_drawings(tmp_path):
    photos, root = tmp_path / "photos", tmp_path / "set"
    add(photos, 0, 1)
    draw(tmp_path / "others", 5, 6)
    (tmp_path / "empty").mkdir()
    assert "none is of a photo: names must be alike without their suffix, as '5.png' here and " in (
        message(photos, root, tmp_path / "others")
    )
    assert "empty: no drawings in it (avif, bmp, " in message(photos, root, tmp_path / "empty")
    assert "holds the photos themselves" in message(photos, root, photos)
    assert "gone: no such folder" in message(photos, root, tmp_path / "gone")
    assert not root.exists()


def test_several_folders_of_photos(tmp_path):
    """Drawings below their folder's name, or all in one folder."""
    add(tmp_path / "a", 0, 1)
    add(tmp_path / "b", 2, 3)
    manifest = replace(MANIFEST, folders=("a", "b"))
    photos = find_all([tmp_path / "a", tmp_path / "b"], [])
    draw(tmp_path / "drawn/a", 0, 1)
    draw(tmp_path / "drawn", 2, 3)
    report = make(photos, tmp_path / "set", tmp_path / "drawn", manifest)
    assert (report.made, report.skipped) == (4, {})
    add(tmp_path / "b", 0)
    draw(tmp_path / "flat", 0, 1, 2, 3)
    both = find_all([tmp_path / "a", tmp_path / "b"], [])
    said = message(both, tmp_path / "other", tmp_path / "flat", manifest)
    assert "'0.png' may be of the photo 'a/0.png' and of 'b/0.png'" in said


def test_how_far_the_drawings_lie_off_is_measured(tmp_path, capsys):
    (tmp_path / "photos").mkdir()
    (tmp_path / "drawn").mkdir()
    rng = np.random.default_rng(0)
    for seed in range(8):  # each drawing lies 2 of its 64 pixels to the right
        noise = rng.integers(0, 256, (64, 66, 3), np.uint8)
        Image.fromarray(noise[:, 2:]).save(tmp_path / f"photos/{seed}.png")
        Image.fromarray(noise[:, :-2]).save(tmp_path / f"drawn/{seed}.png")
    make(tmp_path / "photos", tmp_path / "set", tmp_path / "drawn")
    out = capsys.readouterr().out
    assert "warning: these drawings are not aligned with their photos" in out
    found = json.loads((tmp_path / "set/teacher.json").read_text())
    assert found["displacement_px"] == pytest.approx(2, abs=0.1)
    assert found["mirror_db"] is None


def test_shards_hold_what_folders_do(tmp_path):
    add(tmp_path / "photos", *range(7))
    draw(tmp_path / "drawn", *range(6))
    teacher = FolderTeacher(str(tmp_path / "drawn"))
    maker = pickle.dumps(DrawingPass(teacher, MANIFEST, 0))  # as it comes to a node
    by = {"maker": lambda: pickle.loads(maker)}
    report = make_shards(tmp_path / "photos", tmp_path / "shards", **by)
    assert (report.made, len(report.skipped)) == (6, 1)
    make(tmp_path / "photos", tmp_path / "set", tmp_path / "drawn")
    kept = json.loads((tmp_path / "shards/set/drawings.json").read_text())
    assert kept == json.loads((tmp_path / "set/drawings.json").read_text())
    draw(tmp_path / "drawn", 6)
    maker = pickle.dumps(DrawingPass(teacher, MANIFEST, 0))
    assert make_shards(tmp_path / "photos", tmp_path / "shards", **by).made == 1
    picture(9).save(tmp_path / "drawn/2.png")
    with pytest.raises(DistillError, match="changed since: 1 drawing"):
        make_shards(tmp_path / "photos", tmp_path / "shards", **by)


# The commands


def negatives(folder: Path, count: int | None = None) -> list[str]:
    """Negatives of the photos of the fixture `here`, or of so many; the words that name them."""
    (folder / "artist s, 2nd").mkdir()
    for path in sorted((folder / "photos").iterdir())[:count]:
        ImageOps.invert(Image.open(path)).save(folder / "artist s, 2nd" / f"{path.stem}.webp",
                                               lossless=True)  # fmt: skip
    return ["style=custom", "style.name=ink", "teacher=folder", "teacher.folder=artist s, 2nd"]


@pytest.mark.slow
def test_a_student_of_drawings(here, capsys):
    words = negatives(here, 14)
    assert run(prepare, *words, "photos=photos", *SMALL) == 0
    assert "2 photos skipped, see" in capsys.readouterr().out
    assert go(*words, "trainer.max_steps=1") == 0
    assert run(eval_fid, "run=ink-residual", "features=none", "bootstrap=0") == 0
    capsys.readouterr()
    assert run(export, "exporter.size=64", "run=ink-residual") == 0
    assert "no figures of the teacher: style=ink: its teacher is" in capsys.readouterr().out
    picture = next((here / "photos").iterdir())
    assert run(stylize, str(picture), "run=ink-residual", "compare=true", "-o", "out.png") == 0
    assert "without the teacher, style=ink: its teacher is a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["teacher=folder"], "teacher.folder: missing; name the folder of the drawings"),
        (
            ["teacher=folder", "teacher.folder=photos", "data=photos"],
            "data=photos: photos are cropped",
        ),
    ],
)
@pytest.mark.slow
def test_commands_end_in_one_line(here, capsys, words, said):
    assert go("style=custom", *words) == 1
    lines = [each for each in capsys.readouterr().err.splitlines() if each.startswith("error")]
    assert len(lines) == 1
    assert said in lines[0]
