import hashlib
import json
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tqdm import tqdm

from distill.core.errors import DistillError
from distill.core.process import processor
from distill.data import photo_table
from distill.data.manifest import is_complete, manifest_at
from distill.data.photos import Photo, find_photos
from distill.models.teachers.teacher import Teacher
from distill.prepare import pair_maker
from distill.prepare.pair_maker import plan
from support.labelling import MANIFEST, hashes, make
from support.teachers import Inverted


def noise(path, seed, size=(64, 64)):
    path.parent.mkdir(parents=True, exist_ok=True)
    array = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), np.uint8)
    Image.fromarray(array).save(path)


@pytest.fixture
def folder(tmp_path):
    """Eight photos, each a PNG of the set's own size: its centre square is the photo itself."""
    for seed, name in enumerate("abcdefgh"):
        noise(tmp_path / "photos" / f"{name}.png", seed)
    return tmp_path / "photos"


@pytest.fixture
def root(tmp_path):
    return tmp_path / "set"


def pixels(path):
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).astype(int)


def pictures(root, *parts):
    return sorted(p.name for p in root.joinpath(*parts).glob("*.png"))


# A whole set


@pytest.mark.parametrize(("batch_size", "workers"), [(1, 0), (3, 0), (2, 2)])
@pytest.mark.slow
def test_a_set_is_complete_lossless_and_the_teachers_work(folder, root, batch_size, workers):
    report = make(folder, root, batch_size=batch_size, workers=workers)
    made = sum(report.counts[side] for side in photo_table.SIDES)
    assert (made, report.made, report.skipped) == (8, 8, {})
    for photo in find_photos(folder):
        (stylised,) = root.glob(f"*/stylized/{photo.pair_name}.png")
        kept = stylised.parent.parent / "photo" / stylised.name
        assert (pixels(kept) == pixels(photo.path)).all()
        assert (pixels(stylised) == 255 - pixels(photo.path)).all()
    assert len(hashes(root)) == 2 * 8 + 4


def test_dataset_json_says_what_made_the_set(folder, root):
    report = make(folder, root)
    assert json.loads((root / "dataset.json").read_text()) == {
        "format": 1,
        "recipe": {
            "photos": "here",
            "style": "negative",
            "teacher": "inverts",
            "size": 64,
            "crop": 1.0,
            "views": 1,
            "colour": 0.2,
            "val_fraction": 0.4,
            "test_fraction": 0.0,
            "seed": 0,
            "folders": [],
            "val_folders": [],
            "precision": "float32",
            "sizes": [],
        },
        "counts": {
            "train": report.counts["train"],
            "val": report.counts["val"],
            "test": 0,
            "skipped": 0,
            "near_duplicates": 0,
            "bridging": 0,
            "dropped": 0,
        },
        "devices": [processor()],
    }
    train, val, _ = (report.counts[side] for side in photo_table.SIDES)
    assert str(report) == f"{root}: {train} training and {val} validation pairs, 8 new"


def test_dataset_json_says_which_devices_made_the_pairs(folder, root, monkeypatch):
    def now(name):
        monkeypatch.setattr("distill.prepare.pair_maker.processor", lambda: name)
        make(folder, root)
        return json.loads((root / "dataset.json").read_text()).get("devices")

    assert now("one") == ["one"]
    assert now("another") == ["one"]  # which made none
    noise(folder / "i.png", 9)
    assert now("another") == ["another", "one"]
    content = json.loads((root / "dataset.json").read_text())
    del content["devices"]  # as in a set of an older version
    (root / "dataset.json").write_text(json.dumps(content))
    noise(folder / "j.png", 10)
    assert now("another") is None
    (root / "dataset.json").unlink()
    assert now("another") is None


def test_skipped_tsv_lists_name_and_reason(folder, root):
    (folder / "two words.jpg").write_text("<html>")
    noise(folder / "tiny ü.png", 0, (20, 30))
    report = make(folder, root)
    lines = (root / "skipped.tsv").read_text(encoding="utf-8").splitlines()
    assert lines == [
        "photo\treason",
        "'tiny ü.png'\t20×30 pixels: smaller than 64 a side",
        "'two words.jpg'\tnot a picture, or of an unknown kind",
    ]
    assert set(report.skipped) == {"tiny ü.png", "two words.jpg"}
    assert (report.made, sum(report.counts[side] for side in photo_table.SIDES)) == (8, 8)
    assert "2 photos skipped, see" in str(report)
    assert json.loads((root / "dataset.json").read_text())["counts"]["skipped"] == 2


def test_photos_of_one_name_in_two_folders_are_two_pairs(tmp_path, root):
    for seed, name in enumerate(("1/x.png", "2/x.png", "x.png", "y.png", "z.png", "w.png")):
        noise(tmp_path / "many" / name, seed)
    assert make(tmp_path / "many", root).made == (len(hashes(root)) - 4) / 2 == 6


def test_crop_and_size_are_those_asked_for(tmp_path, root):
    for name in "abcdefgh":
        picture = np.full((128, 160, 3), 255, np.uint8)
        picture[32:96, 48:112] = (10, 20, 30)
        (tmp_path / "photos").mkdir(exist_ok=True)
        Image.fromarray(picture).save(tmp_path / "photos" / f"{name}.png")
    make(tmp_path / "photos", root, replace(MANIFEST, crop=0.5, size=64))
    for path in root.glob("*/photo/*.png"):
        assert pixels(path).shape == (64, 64, 3)
        assert (pixels(path) == (10, 20, 30)).all()


def test_a_teacher_with_transparency_gives_rgba_pictures(folder, root):
    class Half(Teacher):
        def forward(self, photos):
            return torch.cat([photos, torch.full_like(photos[:, :1], 0.2)], 1)

    make(folder, root, teacher=Half())
    for path in root.glob("*/stylized/*.png"):
        with Image.open(path) as stylised:
            assert stylised.mode == "RGBA"
            assert stylised.getchannel("A").getextrema() == (51, 51)


# Three sides

THREE = replace(MANIFEST, val_fraction=0.3, test_fraction=0.25)


def test_the_hash_decides_among_three_sides(folder, root):
    for seed, name in enumerate("ijklruys", 8):
        noise(folder / f"{name}.png", seed)
    report = make(folder, root, THREE)

    def share(name):
        return int(hashlib.sha256(f"0:{name}".encode()).hexdigest()[:16], 16) / 16**16

    found = {
        side: {name[0] for name in pictures(root, side, "photo")} for side in photo_table.SIDES
    }
    assert found["test"] == {name for name in "abcdefghijklruys" if share(name) < 0.25}
    assert found["val"] == {name for name in "abcdefghijklruys" if 0.25 <= share(name) < 0.55}
    train, val, test = (len(found[side]) for side in photo_table.SIDES)
    assert train + val + test == 16
    assert min(train, val, test) > 0
    text = f"{root}: {train} training, {val} validation and {test} test pairs, 16 new"
    assert str(report) == text


def test_test_photos_have_one_view(folder, root):
    make(folder, root, replace(THREE, views=3))
    assert pictures(root, "test", "photo")
    assert not [name for name in pictures(root, "test", "photo") if "-v0" in name]


def test_two_photos_leave_no_test_side_and_it_is_said(tmp_path, root):
    for seed, name in enumerate("ab"):
        noise(tmp_path / "two" / f"{name}.png", seed)
    report = make(tmp_path / "two", root, THREE)
    assert [report.counts[side] for side in photo_table.SIDES] == [1, 1, 0]
    assert "too few photos for a test side, eval_fid scores the validation pairs" in str(report)
    assert "too few" not in str(make(tmp_path / "two", tmp_path / "other"))


def test_a_set_from_before_there_was_a_test_side_is_left_as_it_is(folder, root):
    make(folder, root)
    path = root / "dataset.json"
    content = json.loads(path.read_text())
    del content["recipe"]["test_fraction"]
    del content["counts"]["test"]
    path.write_text(json.dumps(content))
    before, teacher = hashes(root), Inverted()
    assert make(folder, root, teacher=teacher).made == 0
    assert (teacher.seen, hashes(root)) == (0, before)
    assert manifest_at(root)["test_fraction"] == 0
    with pytest.raises(DistillError, match=r"test_fraction 0\.0 there, 0\.25 now"):
        make(folder, root, replace(MANIFEST, test_fraction=0.25))


# One side, several views


def test_one_side_alone_can_be_made_and_the_other_added(folder, root, tmp_path):
    report = make(folder, root, sides=("val",))
    assert (report.counts["train"], report.made) == (0, report.counts["val"])
    assert not (root / "train").exists()
    assert make(folder, root).made == 8 - report.counts["val"]
    make(folder, tmp_path / "at once")
    assert hashes(root) == hashes(tmp_path / "at once")


def test_a_run_on_one_side_keeps_what_was_skipped_on_the_other(folder, root):
    for name in "ijklmnop":  # enough names for both sides
        (folder / f"{name}.jpg").touch()
    make(folder, root)
    before = hashes(root)
    assert len(make(folder, root, sides=("val",)).skipped) == 8
    assert hashes(root) == before


def test_a_photo_that_was_repaired_is_no_longer_listed(folder, root):
    (folder / "i.png").touch()
    assert make(folder, root).skipped
    noise(folder / "i.png", 9)
    assert make(folder, root).made == 1
    assert (root / "skipped.tsv").read_text() == "photo\treason\n"


def test_training_photos_have_views_and_validation_photos_one(folder, root):
    report = make(folder, root, replace(MANIFEST, views=3))
    names = pictures(root, "train", "photo")
    first = [name for name in names if "-v0" not in name]
    assert len(names) == report.counts["train"] == 3 * len(first)
    assert set(names) == {f"{n[:-4]}{v}.png" for n in first for v in ("", "-v001", "-v002")}
    assert not [name for name in pictures(root, "val", "photo") if "-v0" in name]
    for name in first:
        views = [
            pixels(root / "train/photo" / f"{name[:-4]}{v}.png") for v in ("", "-v001", "-v002")
        ]
        assert (views[0] != views[1]).any()
        assert (views[1] != views[2]).any()
    for path in root.glob("*/photo/*.png"):
        assert (pixels(path.parent.parent / "stylized" / path.name) == 255 - pixels(path)).all()


@pytest.mark.slow
def test_views_are_the_same_in_any_order_and_process(folder, root, tmp_path):
    make(folder, root, replace(MANIFEST, views=3))
    few = [photo for photo in find_photos(folder) if photo.key != "a.png"][::-1]
    other = {"photos": few, "batch_size": 2, "workers": 2}
    make(None, tmp_path / "few", replace(MANIFEST, views=3), **other)
    whole, part = hashes(root), hashes(tmp_path / "few")
    shared = [name for name in part if name.endswith(".png")]
    assert len(shared) > 14
    assert all(whole[name] == part[name] for name in shared)


def test_views_can_be_added_later(folder, root, tmp_path):
    train = make(folder, root).counts["train"]
    assert make(folder, root, replace(MANIFEST, views=2)).made == train
    make(folder, tmp_path / "at once", replace(MANIFEST, views=2))
    assert hashes(root) == hashes(tmp_path / "at once")


def test_a_plan_follows_the_order_of_the_photos():
    photos = [Photo(Path(name), name) for name in "abcd"]
    side_of = {"a": "val", "b": "test", "c": "train", "d": "train"}
    jobs = plan([(p, side_of[p.key]) for p in photos], lambda photo: 2)
    assert [(job.photo.key, job.number) for job in jobs] == [
        ("a", 0),
        ("b", 0),
        ("c", 0),
        ("c", 1),
        ("d", 0),
        ("d", 1),
    ]


# Going on


def test_only_new_photos_are_stylised(folder, root):
    make(folder, root)
    before, teacher = hashes(root), Inverted()
    noise(folder / "new.png", 9)
    assert make(folder, root, teacher=teacher).made == teacher.seen == 1
    after = hashes(root)
    assert all(after[name] == before[name] for name in before if name.endswith(".png"))
    assert len([name for name in after if name not in before]) == 2


@pytest.mark.parametrize("half", ["photo", "stylized"])
def test_a_pair_of_which_half_is_missing_is_made_again(folder, root, half):
    make(folder, root)
    before, teacher = hashes(root), Inverted()
    next(root.glob(f"train/{half}/*.png")).unlink()
    assert make(folder, root, teacher=teacher).made == teacher.seen == 1
    assert hashes(root) == before


def test_what_a_killed_run_left_aside_is_swept_and_nothing_else(folder, root):
    make(folder, root)
    before = hashes(root)
    stray = [
        root / ".dataset.json.x1y2z3.part",
        root / "train" / "photo" / ".a-1.png.abcdefgh.part",
        root / "val" / "stylized" / ".b-2.png.abcdefgh.part",
    ]
    # A folder of the user's own below it, with another program's unfinished download.
    mine = root / "mine" / ".film.mkv.part"
    mine.parent.mkdir()
    for path in (*stray, mine):
        path.write_bytes(b"half")
    next(root.glob("val/stylized/*.png")).unlink()
    make(folder, root)
    assert not any(path.exists() for path in stray)
    assert mine.exists()
    mine.unlink()
    assert hashes(root) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize(
    ("module", "function", "calls", "pairs", "left"),
    [
        (pair_maker, "save_png", 4, 1, 0),  # between both pictures
        (os, "replace", 9, 2, 1),  # after four other files: the third pair
        (os, "replace", 3, 0, 1),  # photos.tsv: dataset.json alone is there
        (os, "replace", 2, 0, 1),  # dataset.json itself, the very first file
    ],
)
def test_a_killed_run_goes_on_to_the_same_bytes(
    folder, root, tmp_path, monkeypatch, module, function, calls, pairs, left
):
    """By SIGKILL at the n-th call of a function: no handler of Python's has a chance."""
    manifest, real, so_far = replace(MANIFEST, views=2), getattr(module, function), []

    def counted(*args, **kwargs):
        so_far.append(args)
        if len(so_far) == calls:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)

    noise(folder / "tiny.png", 0, (10, 10))
    child = os.fork()
    if not child:
        try:
            tqdm.set_lock(threading.RLock())  # its own is shared by forks, and dies locked
            monkeypatch.setattr(module, function, counted)
            make(folder, root, manifest)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert len(list(root.glob("*/stylized/*.png"))) == pairs
    assert len(list(root.rglob(".*.part"))) == left

    teacher, checked = Inverted(), (root / "teacher.json").is_file()
    make(folder, root, manifest, teacher)
    make(folder, tmp_path / "uninterrupted", manifest)
    assert hashes(root) == hashes(tmp_path / "uninterrupted")
    labelled = len(list(root.glob("*/stylized/*.png"))) - pairs
    assert teacher.seen == labelled + (0 if checked else 2 * 8)  # eight photos, mirrored too


# Other manifests


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"teacher": "other"}, "teacher 'inverts' there, 'other' now"),
        ({"size": 128}, "size 64 there, 128 now"),
        ({"crop": 0.8}, "crop 1.0 there, 0.8 now"),
        ({"style": "hayao"}, "style 'negative' there, 'hayao' now"),
        ({"val_fraction": 0.2}, "val_fraction 0.4 there, 0.2 now"),
        ({"colour": 0.1}, "colour 0.2 there, 0.1 now"),
        ({"seed": 3}, "seed 0 there, 3 now"),
        ({"size": 128, "seed": 3}, "size 64 there, 128 now; seed 0 there, 3 now"),
    ],
)
def test_another_manifest_is_refused_with_what_differs(folder, root, change, said):
    make(folder, root)
    before, teacher = hashes(root), Inverted()
    with pytest.raises(DistillError) as error:
        make(folder, root, replace(MANIFEST, **change), teacher)
    assert f"({said})" in str(error.value)
    assert str(root) in str(error.value)
    assert "data.root=DIR" in str(error.value)
    assert (teacher.seen, hashes(root)) == (0, before)


def test_a_set_follows_its_photos_to_another_folder(folder, root):
    make(folder, root)
    teacher = Inverted()
    make(folder.rename(folder.with_name("moved")), root, replace(MANIFEST, photos="there"), teacher)
    assert teacher.seen == 0
    assert manifest_at(root)["photos"] == "there"


def test_other_photos_of_the_same_names_are_refused(folder, root, tmp_path):
    make(folder, root)
    before = hashes(root)
    for seed, path in enumerate(sorted(folder.iterdir())):
        noise(tmp_path / "others" / path.name, 100 + seed)
    with pytest.raises(DistillError, match="holds pairs of other photos, those of here"):
        make(tmp_path / "others", root, replace(MANIFEST, photos="there"))
    assert hashes(root) == before


def test_a_set_that_was_only_begun_refuses_another_manifest_too(folder, root):
    class Broken(Teacher):
        def forward(self, photos):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(folder, root, teacher=Broken())
    with pytest.raises(DistillError, match="size 64 there, 128 now"):
        replace(MANIFEST, size=128).check(root)


def test_a_first_labelling_that_fails_leaves_no_set(folder, root):
    class Broken(Teacher):
        def forward(self, photos):
            raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        make(folder, root, teacher=Broken())
    assert not root.exists()


WHOLE = {"recipe": {"style": "toon", "teacher": "t"}, "counts": None}
DAMAGED = {
    "cut": '{"format": 1, "rec',
    "too deep": "[" * 99_999,
    "no counts": json.dumps({"recipe": WHOLE["recipe"]}),
    "teacher": json.dumps(WHOLE | {"recipe": {"style": "toon", "teacher": 1}}),
    "style": json.dumps(WHOLE | {"recipe": {"style": [], "teacher": "t"}}),
    "precision": json.dumps(WHOLE | {"recipe": WHOLE["recipe"] | {"precision": "float3"}}),
    "devices": json.dumps(WHOLE | {"devices": [1]}),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_manifest_is_named(root, kind):
    root.mkdir()
    (root / "dataset.json").write_text(DAMAGED[kind])
    for read in (manifest_at, is_complete):
        with pytest.raises(DistillError, match=r"dataset\.json: damaged"):
            read(root)


def test_as_little_as_others_take_from_it_is_a_whole_manifest(root):
    root.mkdir()
    (root / "dataset.json").write_text(json.dumps(WHOLE))
    assert manifest_at(root)["teacher"] == "t"
    assert not is_complete(root)


ROWS = {
    "too few cells": "a-1\ttrain",
    "too many": "a-1\ttrain\t''\t0\t'a.png'\t\t",
    "a side": "a-1\tboth\t''\t0\t'a.png'\t",
    "a folder that is a list": "a-1\ttrain\t[]\t0\t'a.png'\t",
    "a name that is a number": "a-1\ttrain\t''\t0\t5\t",
    "a name that is no text": "a-1\ttrain\t''\t0\ta.png\t",
    "an escape": r"a-1\ttrain\t''\t0\t'\x1'\t".replace(r"\t", "\t"),
}


@pytest.mark.parametrize("kind", ROWS)
def test_a_damaged_register_is_named(root, kind):
    root.mkdir()
    (root / "photos.tsv").write_text(f"{photo_table.HEAD}{ROWS[kind]}\n")
    with pytest.raises(DistillError, match=r"photos\.tsv: damaged in line 2; delete it"):
        photo_table.read_rows(root)


@pytest.mark.parametrize(
    "key", ["a.png", "it's", 'a "b"', "both ' and \"", "a\\b", "\n\t\0", "é😀\u2028", "\udcff", ""]
)
def test_every_name_of_a_photo_is_read_again(root, key):
    root.mkdir()
    row = photo_table.PhotoRow.of(Photo(root / "x", key, folder=key), "val")
    photo_table.write_rows(root, [row])
    assert photo_table.read_rows(root) == {row.pair: row}


def test_a_folder_without_a_set_has_no_manifest(tmp_path):
    assert manifest_at(tmp_path) is None
    assert not is_complete(tmp_path)
    MANIFEST.check(tmp_path)  # does not raise


# Damage


@pytest.mark.parametrize("what", ["empty", "cut", "garbage", "bit"])
@pytest.mark.parametrize("kind", ["photo", "stylized"])
def test_damaged_pairs_are_found_and_made_anew(folder, root, what, kind):
    make(folder, root)
    before = hashes(root)
    files = sorted(root.glob(f"*/{kind}/*.png"))[:2]
    for file in files:
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 4
        harm = {"empty": b"", "cut": content[:-20], "garbage": b"x" * 500, "bit": content}
        file.write_bytes(harm[what])
    report = make(folder, root)
    assert (report.damaged, report.made) == (2, 2)
    assert "; 2 that were damaged are gone, and made again" in str(report)
    assert hashes(root) == before
    again = make(folder, root)
    assert (again.damaged, again.made) == (0, 0)
    assert "made again" not in str(again)


def test_a_damaged_pair_whose_photo_is_gone_too_is_skipped_and_said(folder, root):
    make(folder, root)
    file = next(root.glob("train/stylized/*.png"))
    file.write_bytes(b"")
    (folder / f"{file.name.rsplit('-', 1)[0]}.png").write_bytes(b"no picture")
    report = make(folder, root)
    assert (report.damaged, report.made, len(report.skipped)) == (1, 0, 1)
    assert not file.is_file()
    assert not (file.parents[1] / "photo" / file.name).is_file()
