"""Whole pictures in several sizes: which a photo is labelled at, and how they look."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from distill.core.errors import DistillError
from distill.data import listing
from distill.data.address import Address
from distill.data.manifest import Manifest, manifest_at
from distill.data.photo_table import pair_of, read_rows, size_of
from distill.data.photos import Photo, find_photos
from distill.prepare import whole_photos
from distill.prepare.whole_photos import WholePictures, long_sides, whole
from support.labelling import MANIFEST, hashes, make
from support.stored_photos import upload
from support.teachers import Dies, Inverted

SIZES = (64, 96, 128, 192)  # beside squares of 64
OF_SIZES = replace(MANIFEST, sizes=SIZES)
PHOTOS = {  # width and height
    "a": (170, 90), "b": (90, 170), "c": (112, 112), "d": (200, 64), "e": (84, 80),
    "f": (70, 64), "g": (300, 210), "h": (110, 64),
}  # fmt: skip


def noise(path, size, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng([*path.stem.encode(), seed])
    small = Image.fromarray(rng.integers(0, 256, (6, 6, 3), np.uint8))
    small.resize(size, Image.Resampling.BICUBIC).save(path)


@pytest.fixture
def folder(tmp_path):
    for name, size in PHOTOS.items():
        noise(tmp_path / "photos" / f"{name}.png", size)
    return tmp_path / "photos"


@pytest.fixture
def root(tmp_path):
    return tmp_path / "set"


def sizes_there(root):
    """Side and sizes of each photo's whole pictures, by the first letter of its name."""
    found = {}
    for path in root.glob("*/stylized/*.png"):
        side, sizes = found.setdefault(path.name[0], (path.parents[1].name, set()))
        assert side == path.parents[1].name
        if size := size_of(path.name):
            sizes.add(size)
    return found


def expected(name, side):
    """By the rule: at most 15 % larger than the photo; one by the hash of those to train on."""
    fitting = [size for size in SIZES if size <= 1.15 * max(PHOTOS[name])]
    if side != "train":
        return set(fitting)
    larger = [size for size in fitting if size > 64]
    digest = int(hashlib.sha256(f"{name}.png".encode()).hexdigest()[:8], 16)
    return {larger[digest % len(larger)]} if larger else set()


@pytest.mark.parametrize(("batch_size", "workers"), [(1, 0), (5, 0), (3, 2)])
def test_a_photo_is_labelled_whole_at_the_sizes_that_it_allows(folder, root, batch_size, workers):
    report = make(folder, root, OF_SIZES, batch_size=batch_size, workers=workers)
    there = sizes_there(root)
    assert there.keys() == PHOTOS.keys()
    for name, (side, sizes) in there.items():
        assert sizes == expected(name, side), name
    assert {side for side, _ in there.values()} == {"train", "val"}
    assert report.made == len(PHOTOS) + sum(len(sizes) for _, sizes in there.values())
    assert report.made == sum(report.counts[side] for side in ("train", "val", "test"))
    assert manifest_at(root)["sizes"] == [*SIZES]
    assert make(folder, root, OF_SIZES, batch_size=batch_size).made == 0


def test_whole_pictures_are_the_photo_s_and_the_teacher_s(folder, root):
    make(folder, root, OF_SIZES)
    checked = 0
    for drawn in root.glob("*/stylized/*-s*.png"):
        size = size_of(drawn.name)
        with Image.open(folder / f"{drawn.name[0]}.png") as photo, Image.open(drawn) as picture:
            wanted = [
                max(64, round(side * size / max(photo.size) / 32) * 32) for side in photo.size
            ]
            assert picture.size == (*wanted,)
            assert max(wanted) == size
            scaled = np.asarray(photo.convert("RGB").resize(wanted, Image.Resampling.LANCZOS))
            kept = np.asarray(Image.open(drawn.parents[1] / "photo" / drawn.name))
            assert (kept == scaled).all()
            assert (np.asarray(picture) == 255 - kept).all()
            checked += 1
    assert checked > len(PHOTOS)


@pytest.mark.parametrize(
    ("size", "long", "wanted"),
    [
        ((1280, 853), 512, (512, 352)),  # 341.2 lies nearer to 352 than to 320
        ((853, 1280), 1024, (672, 1024)),
        ((640, 640), 768, (768, 768)),
        ((2000, 100), 512, (512, 64)),  # no side is shorter than 64
    ],
)
def test_sides_keep_their_proportions_rounded_to_32(size, long, wanted):
    assert whole(Image.new("RGB", size), long).size == wanted


def test_256_in_the_sizes_changes_nothing_of_what_is_trained_on():
    """Crops of 256² cannot be cut out of it; its centre square is there anyway."""
    photos = [Photo(None, f"{n}.jpg") for n in range(40)]
    longest = {photo.key: 1280 for photo in photos}
    plain, more = (
        WholePictures(Manifest("", "", "", size=256, sizes=sizes), longest)
        for sizes in ((512, 768, 1024), (256, 512, 768, 1024))
    )
    chosen = [plain.of(photo, "train") for photo in photos]
    assert chosen == [more.of(photo, "train") for photo in photos]
    assert {size for sizes in chosen for size in sizes} == {512, 768, 1024}
    assert more.of(photos[0], "test") == [256, 512, 768, 1024]


@pytest.mark.parametrize("after", [0, 3, 11, 15])
def test_a_set_that_was_killed_goes_on_to_the_same(folder, root, tmp_path, after):
    with pytest.raises(KeyboardInterrupt):
        make(folder, root, OF_SIZES, Dies(after))
    make(folder, root, OF_SIZES)
    make(folder, tmp_path / "at once", OF_SIZES)
    assert hashes(root) == hashes(tmp_path / "at once")


def test_sizes_can_be_added_to_a_set_and_what_is_there_stays(folder, root):
    make(folder, root)
    content = json.loads((root / "dataset.json").read_text())
    del content["recipe"]["sizes"]  # as an older version wrote it
    (root / "dataset.json").write_text(json.dumps(content))
    before = hashes(root)
    assert make(folder, root).made == 0
    teacher = Inverted()
    report = make(folder, root, OF_SIZES, teacher)
    assert report.made == teacher.seen > len(PHOTOS)
    after = hashes(root)
    assert {name for name in before if after[name] != before[name]} <= {"dataset.json"}
    assert {pair_of(p.name) for p in root.glob("*/photo/*-s*.png")} <= read_rows(root).keys()


def test_photos_that_are_too_small_have_their_square_alone(folder, root, capsys):
    sizes = replace(MANIFEST, sizes=(160, 256))
    make(folder, root, sizes)
    there = sizes_there(root)
    small = [n for n, (side, _) in there.items() if side == "train" and max(PHOTOS[n]) < 140]
    trained = [n for n, (side, _) in there.items() if side == "train"]
    assert small
    said = f"smaller than 140 pixels on the long side: {len(small)} of {len(trained)} training"
    assert said in capsys.readouterr().out
    assert all(not there[name][1] for name in small)
    assert len([*root.glob("*/photo/[a-h]-????????.png")]) == len(PHOTOS)


def test_no_photo_that_is_large_enough_is_one_line(folder, root):
    with pytest.raises(DistillError) as error:
        make(folder, root, replace(MANIFEST, sizes=(512, 1024)))
    assert "512 needs 446 pixels on the long side, the largest has" in str(error.value)
    assert not root.exists()


def test_a_photo_that_is_dropped_loses_its_whole_pictures(folder, root, tmp_path):
    make(folder, root, OF_SIZES)
    (tmp_path / "drop.txt").write_text("g.png\n")
    make(folder, root, OF_SIZES, drop=tmp_path / "drop.txt")
    assert sizes_there(root).keys() == PHOTOS.keys() - {"g"}


def test_a_damaged_whole_picture_is_made_anew(folder, root):
    make(folder, root, OF_SIZES)
    before = hashes(root)
    one = next(root.glob("train/stylized/*-s*.png"))
    one.write_bytes(one.read_bytes()[:200])
    report = make(folder, root, OF_SIZES)
    assert (report.damaged, hashes(root)) == (1, before)


# Headers


def test_long_sides_are_those_of_the_headers_turned_or_not(tmp_path):
    noise(tmp_path / "a.png", (90, 170))
    turned = Image.Exif()
    turned[274] = 6
    Image.new("RGB", (200, 80)).save(tmp_path / "b.jpg", exif=turned)
    (tmp_path / "c.jpg").write_text("no picture")
    (tmp_path / "d.png").write_bytes(b"")
    found = long_sides(find_photos(tmp_path), "here")
    assert found == {"a.png": 170, "b.jpg": 200, "c.jpg": 0, "d.png": 0}


def test_headers_are_read_once_and_again_when_a_file_changes(tmp_path, monkeypatch):
    noise(tmp_path / "a.png", (90, 170))
    noise(tmp_path / "b.png", (90, 80))
    photos, read = find_photos(tmp_path), []
    plain = whole_photos._long_side
    monkeypatch.setattr(
        whole_photos, "_long_side", lambda photo: read.append(photo.key) or plain(photo)
    )
    first = long_sides(photos, "here")
    assert long_sides(photos, "here") == first == {"a.png": 170, "b.png": 90}
    noise(tmp_path / "b.png", (111, 80), seed=1)
    assert long_sides(photos, "here") == {"a.png": 170, "b.png": 111}
    assert read == ["a.png", "b.png", "b.png"]


def test_of_a_photo_at_an_address_its_beginning_is_read(tmp_path, monkeypatch):
    noise(tmp_path / "photos" / "a.png", (600, 500))
    noise(tmp_path / "photos" / "b.png", (600, 500))
    monkeypatch.setattr(whole_photos, "_HEAD", 2000)
    photos = find_photos(Address(upload(tmp_path / "photos", f"memory://{tmp_path.name}/photos")))
    whole_files = []
    monkeypatch.setattr(listing.StoredPhoto, "read", lambda self: whole_files.append(self) or b"")
    assert long_sides(photos, "there") == {"a.png": 600, "b.png": 600}
    assert not whole_files
