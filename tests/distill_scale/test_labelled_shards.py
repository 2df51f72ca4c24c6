"""Shards that a teacher draws from photos: the set that a folder of pairs would hold."""

import os
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from distill.core.errors import DistillError
from distill.core.process import processor
from distill.data import listing
from distill.data.address import Address
from distill.data.photo_table import read_rows, size_of
from distill_scale.packed.shard_index import Catalogue, read_rows_of
from distill_scale.packed.unpacking import unpack
from distill_scale.shards.packing import pack
from support.labelling import MANIFEST, add, add_copies, make
from support.pairs_on_disk import contents, write_set
from support.shards_by_teacher import make_shards
from support.stored_photos import upload
from support.teachers import Dies, Inverted

pytest.importorskip("pyarrow", reason="needs the extra shards")
THREE_SIDED = replace(MANIFEST, val_fraction=0.2, test_fraction=0.2)


@pytest.fixture
def folder(tmp_path):
    """Twenty photos and one that is none."""
    add(tmp_path / "photos", *range(20))
    (tmp_path / "photos" / "none.jpg").write_bytes(b"no picture")
    return tmp_path / "photos"


@pytest.fixture
def root(tmp_path):
    return tmp_path / "shards"


def pairs_of(root):
    """The pair names of every shard."""
    address = Address(root)
    catalogue = Catalogue(address)
    names = [catalogue.name(i) for i in range(len(catalogue))]
    return {name: [row.name for row in read_rows_of(address, name)] for name in names}


def members(root):
    """The bytes of every picture in the shards, by its name without the number in the shard."""
    found = {}
    for path in root.glob("shards/*.tar"):
        with tarfile.open(path) as tar:
            found |= {each.name[6:]: tar.extractfile(each).read() for each in tar}
    return found


def test_the_index_says_what_is_known_of_each_pair(folder, root):
    add_copies(folder, 3)
    make_shards(folder, root)
    known = read_rows(root / "set")
    rows = [row for name in pairs_of(root) for row in read_rows_of(Address(root), name)]
    assert {row.pair for row in rows} == {pair for pair in known if known[pair].side} - {
        pair for pair in known if pair.startswith("none")
    }
    for row in rows:
        assert (row.side, row.photo) == (known[row.pair].side, known[row.pair].key)
        assert row.near_duplicate == known[row.pair].near_duplicate
        assert row.device == processor()
    assert sum(row.near_duplicate for row in rows) == 2


def test_made_again_nothing_is_drawn_or_written(folder, root):
    make_shards(folder, root)
    before = {p: p.stat().st_mtime_ns for p in root.rglob("*")}
    teacher = Inverted()
    report = make_shards(folder, root, teacher=teacher)
    assert (teacher.seen, report.made) == (0, 0)
    assert {p: p.stat().st_mtime_ns for p in root.rglob("*")} == before


@pytest.mark.parametrize("after", [4, 45])
def test_a_killed_command_draws_no_picture_twice(folder, root, tmp_path, after):
    # Of the pictures that a teacher sees 2 × 16 are of its check, which comes first.
    make_shards(folder, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        make_shards(folder, root, teacher=Dies(after))
    drawn = sum(len(read_rows_of(Address(root), p.stem)) for p in root.glob("index/*"))
    teacher = Inverted()
    make_shards(folder, root, teacher=teacher)
    assert contents(root) == contents(tmp_path / "whole")
    assert teacher.seen == 20 - drawn + (32 if after < 32 else 0)


def test_photos_that_are_added_go_into_further_shards(folder, root):
    make_shards(folder, root)
    before, kept = pairs_of(root), contents(root / "shards")
    add(folder, *range(20, 30))
    teacher = Inverted()
    assert make_shards(folder, root, teacher=teacher).made == 10
    after = pairs_of(root)
    assert teacher.seen == 10
    assert before.items() <= after.items()
    assert kept.items() <= contents(root / "shards").items()
    assert sum(map(len, after.values())) == 30


@pytest.mark.parametrize("codec", ["raw", "jpeg"])
def test_what_is_dropped_leaves_its_shard_whose_others_are_copied(folder, root, tmp_path, codec):
    make_shards(folder, root, form=(codec, 3))
    before, pictures = pairs_of(root), members(root)
    shard, names = next((s, names) for s, names in before.items() if len(names) == 3)
    (tmp_path / "drop.txt").write_text(f"{names[0]}\n")
    teacher = Inverted()
    form = (codec, 3)
    report = make_shards(folder, root, teacher=teacher, drop=tmp_path / "drop.txt", form=form)
    after = pairs_of(root)
    assert (teacher.seen, report.made, report.counts["dropped"]) == (0, 0, 1)
    gone = names[0].removesuffix(".png")
    assert members(root) == {k: v for k, v in pictures.items() if not k.startswith(gone)}
    assert read_rows_of(Address(root), next(s for s in after if after[s] == names[1:]))[0].device
    assert shard not in after
    assert not (root / "shards" / f"{shard}.tar").exists()
    assert names[1:] in after.values()
    assert before.keys() - {shard} <= after.keys()
    assert make_shards(folder, root, form=form).made == 0


@pytest.mark.parametrize("harm", ["cut", "gone", "index"])
def test_a_damaged_shard_is_drawn_again_the_same(folder, root, harm):
    make_shards(folder, root)
    before = contents(root)
    tar = sorted(root.glob("shards/*.tar"))[1]
    if harm == "cut":
        tar.write_bytes(tar.read_bytes()[:-600])
    elif harm == "gone":
        tar.unlink()
    else:
        (root / "index" / f"{tar.stem}.parquet").write_bytes(b"PAR1")
    make_shards(folder, root)
    assert contents(root) == before


def test_a_photo_that_was_mended_gets_its_pair(folder, root):
    make_shards(folder, root)
    before = pairs_of(root)
    os.replace(folder / "5.png", folder / "none.jpg")  # another photo by this name
    add(folder, 5)
    report = make_shards(folder, root)
    assert report.made == 1
    assert not report.skipped
    assert before.items() <= pairs_of(root).items()
    assert make_shards(folder, root).made == 0


@pytest.mark.parametrize("codec", ["raw", "jpeg"])
def test_shards_follow_their_photos_to_another_folder_but_take_no_others(folder, root, codec):
    make_shards(folder, root, form=(codec, 3))
    moved, there = folder.rename(folder.with_name("moved")), replace(MANIFEST, photos="there")
    teacher = Inverted()
    make_shards(moved, root, there, teacher, form=(codec, 3))
    assert teacher.seen == 0
    for seed in range(20):
        add(moved, seed + 100, name=str(seed))
    with pytest.raises(DistillError, match="holds pairs of other photos, those of there"):
        make_shards(moved, root, replace(MANIFEST, photos="elsewhere"), form=(codec, 3))


@pytest.mark.slow
def test_another_form_or_another_set_is_refused(folder, root, tmp_path):
    make_shards(folder, root)
    with pytest.raises(DistillError, match=r"made with shard\.codec=raw shard\.pairs=3; say so"):
        make_shards(folder, root, form=("qoi", 3))
    with pytest.raises(DistillError, match="size 64 there, 128 now"):
        make_shards(folder, root, replace(MANIFEST, size=128))
    write_set(tmp_path / "own", {"train": {"": 4}, "val": {"": 2}}, teacher=False)
    pack(tmp_path / "own", Address(tmp_path / "packed"), "raw", 3, (0.1, 0, 0.1))
    with pytest.raises(DistillError, match="shards of pairs that no teacher of ours made"):
        make_shards(folder, tmp_path / "packed")
    make(folder, tmp_path / "set")
    with pytest.raises(DistillError, match="holds a set of another kind"):
        make_shards(folder, tmp_path / "set")


def test_shards_of_a_packed_set_are_gone_on_with(folder, root, tmp_path):
    make(folder, tmp_path / "set")
    pack(tmp_path / "set", Address(root), "raw", 3, (0.1, 0, 0.1))
    kept = contents(root / "shards")
    add(folder, 90, 91)
    teacher = Inverted()
    assert make_shards(folder, root, teacher=teacher).made == 2
    assert teacher.seen == 2
    assert kept.items() <= contents(root / "shards").items()


@pytest.mark.parametrize("set_is", ["shards", "folder"])
def test_photos_at_an_address_give_what_they_do_in_a_folder(folder, tmp_path, set_is):
    add_copies(folder, 3)
    add(folder / "a" / "b", 40, 41)
    there = Address(upload(folder, f"memory://{tmp_path.name}/photos"))
    moved = replace(THREE_SIDED, photos=str(there))
    build = make_shards if set_is == "shards" else make
    here, teacher = build(folder, tmp_path / "here", THREE_SIDED), Inverted()
    away = build(there, tmp_path / "away", moved, teacher)
    assert (away.made, away.counts, away.skipped) == (here.made, here.counts, here.skipped)
    ours, theirs = (contents(tmp_path / name) for name in ("here", "away"))
    # The files that say where the photos are from.
    differ = {name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)}
    assert {Path(name).name for name in differ} == {"dataset.json"}
    for name in differ:
        text = (tmp_path / "here" / name).read_text().replace('"here"', f'"{there}"')
        assert text == (tmp_path / "away" / name).read_text()
    drawn = teacher.seen
    assert build(there, tmp_path / "away", moved, teacher).made == 0
    assert teacher.seen == drawn


@pytest.mark.parametrize("build", [make_shards, make], ids=["shards", "folder"])
def test_a_store_that_breaks_in_mid_labelling_makes_no_photo_a_bad_one(
    folder, tmp_path, monkeypatch, build
):
    """The command ends in one line and goes on; nothing is listed that a photo is no fault of."""
    there = Address(upload(folder, f"memory://{tmp_path.name}/photos"))
    manifest = replace(MANIFEST, photos=str(there))
    build(there, tmp_path / "whole", manifest)
    plain, read = Address.read, []

    def breaks(self, path):
        read.extend([path] * (self.text == there.text))
        if len(read) > 25:  # 1 thumbnail and 16 for the check of the teacher come first
            raise DistillError("out of reach")
        return plain(self, path)

    monkeypatch.setattr(listing, "PAUSES", ())
    monkeypatch.setattr(Address, "read", breaks)
    with pytest.raises(DistillError, match=r"\.png: cannot be read \(out of reach\); run it"):
        build(there, tmp_path / "set", manifest)
    monkeypatch.setattr(Address, "read", plain)
    report = build(there, tmp_path / "set", manifest)
    assert report.skipped.keys() == {"none.jpg"}
    assert contents(tmp_path / "set") == contents(tmp_path / "whole")


def test_a_full_disk_is_one_line_and_the_rest_is_drawn_later(folder, root, tmp_path, monkeypatch):
    make_shards(folder, tmp_path / "whole")
    write, written = Address.write, []

    def full(self, path, content):
        written.append(path)
        if len(written) == 6:
            raise OSError(28, "No space left on device")
        return write(self, path, content)

    monkeypatch.setattr(Address, "write", full)
    with pytest.raises(DistillError) as error:
        make_shards(folder, root)
    assert str(error.value) == (
        f"{root}: the disk is full; free some space and run it again to resume"
    )
    make_shards(folder, root)
    assert contents(root) == contents(tmp_path / "whole")


@pytest.mark.parametrize("there", ["{}/shards", "memory://{}"])
def test_a_first_labelling_that_fails_leaves_nothing(folder, tmp_path, there):
    class Fails(Inverted):
        def forward(self, photos):
            raise DistillError("no such layer")

    root = there.format(tmp_path if "{}/" in there else tmp_path.name)
    with pytest.raises(DistillError, match="no such layer"):
        make_shards(folder, root, teacher=Fails())
    assert not Address(root).find()
    assert not (tmp_path / "shards").exists()
    assert make_shards(folder, root).made == 20
    add(folder, 90)
    with pytest.raises(DistillError, match="no such layer"):
        make_shards(folder, root, teacher=Fails())
    assert len(Address(root).names("shards")) == 8  # what was there stays


# Several sizes


@pytest.fixture
def large(tmp_path):
    """Photos of which some allow a long side of 96, and of 128."""
    for seed, size in enumerate([(72, 64), (90, 70), (100, 120), (130, 90), (80, 140), (150, 150)]):
        add(tmp_path / "large", seed, change=lambda image, size=size: image.resize(size))
    return tmp_path / "large"


OF_SIZES = replace(MANIFEST, sizes=(64, 96, 128))


@pytest.mark.parametrize("codec", ["raw", "qoi", "png"])
def test_whole_pictures_lie_in_shards_of_their_own(large, root, tmp_path, codec):
    if codec == "qoi":
        pytest.importorskip("qoi", reason="needs the extra shards")
    report = make_shards(large, root, OF_SIZES, form=(codec, 4))
    make(large, tmp_path / "set", OF_SIZES)
    unpack(Address(root), tmp_path / "unpacked")
    assert contents(tmp_path / "unpacked") == contents(tmp_path / "set")
    address, sizes = Address(root), set()
    catalogue = Catalogue(address)
    for number in range(len(catalogue)):
        for row in read_rows_of(address, catalogue.name(number)):
            size = size_of(row.name)
            assert bool(size) == catalogue.whole[number]
            assert max(row.width, row.height) == (size or 64)
            sizes.add(size)
    assert sizes == {None, 64, 96, 128}
    assert report.made == sum(report.counts[side] for side in ("train", "val", "test"))
    assert make_shards(large, root, OF_SIZES, form=(codec, 4)).made == 0


def test_a_set_s_shards_are_those_of_its_folder(large, root, tmp_path):
    make(large, tmp_path / "set", OF_SIZES)
    pack(tmp_path / "set", Address(root), "raw", 4, (0.1, 0, 0.1))
    unpack(Address(root), tmp_path / "unpacked")
    assert contents(tmp_path / "unpacked") == contents(tmp_path / "set")
    catalogue = Catalogue(Address(root))
    assert {*catalogue.whole.tolist()} == {True, False}
    assert len(catalogue.of("train")) == sum(
        len(catalogue.of("train", whole)) for whole in (True, False)
    )


def test_sizes_added_to_shards_go_into_further_ones(large, root):
    make_shards(large, root)
    before = contents(root / "shards")
    teacher = Inverted()
    report = make_shards(large, root, OF_SIZES, teacher)
    after = contents(root / "shards")
    assert report.made == teacher.seen > 6
    assert before.items() <= after.items()
    catalogue = Catalogue(Address(root))
    new = {catalogue.name(number) for number in range(len(catalogue)) if catalogue.whole[number]}
    assert {name.removesuffix(".tar") for name in after.keys() - before.keys()} == new
