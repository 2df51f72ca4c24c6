"""Folder sets to shards and back: exact, resumable, and read pair by pair."""

import hashlib
import io
import json
import os
import shutil
import zlib

import numpy as np
import pytest
from filelock import FileLock
from PIL import Image

from distill.core.errors import DistillError
from distill.data.address import Address
from distill.data.augment import as_square
from distill.data.datasets import PairSet
from distill.data.decode import BadPhoto
from distill.data.pairs import find_pairs
from distill_scale.packed import unpacking
from distill_scale.packed.shard_index import Catalogue, read_rows_of, shard_path
from distill_scale.packed.shard_manifest import finished_shards
from distill_scale.packed.sharded_pairs import ShardedPairs, read_at
from distill_scale.packed.unpacking import held_out_folder, unpack
from distill_scale.shards.packing import pack
from support.pairs_on_disk import SIDE, contents, pixels, write_set

parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra shards")
COUNTS = {"train": {"a": 11, "b": 5}, "val": {"a": 3, "b": 0}, "test": {"a": 2, "b": 2}}
SPLIT = (0.3, 0, 0.2)


@pytest.fixture
def made(tmp_path):
    return write_set(tmp_path / "set", COUNTS)


def packed(folder, root, codec="webp", per_shard=4, workers=0):
    return pack(folder, root, codec, per_shard, SPLIT, workers)


def side_of(root, side):
    return ShardedPairs(root, Catalogue(root), side, finished_shards(root).codec)


def test_there_and_back_is_the_same_set(made, tmp_path):
    root = Address(tmp_path / "shards")
    report = packed(made, root)
    assert report.counts == {"train": 16, "val": 3, "test": 4}
    assert (report.shards, report.made, report.skipped) == (3 + 2 + 1 + 1 + 1, 8, 0)
    back = unpack(root, tmp_path / "back")
    assert (back.pairs, back.new, back.skipped) == (23, 23, 0)
    assert pixels(tmp_path / "back") == pixels(made)
    beside = [name for name in contents(made) if not name.endswith(".png")]
    assert sorted(beside) == ["dataset.json", "photos.tsv", "skipped.tsv"]
    for name in beside:
        assert (tmp_path / "back" / name).read_bytes() == (made / name).read_bytes()


def test_the_index_says_what_made_the_pairs_where_it_was_one_device(made, tmp_path):
    said = json.loads((made / "dataset.json").read_text())
    for name, devices in {"one": ["a"], "two": ["a", "b"], "none": []}.items():
        (made / "dataset.json").write_text(json.dumps(said | {"devices": devices}))
        root = Address(tmp_path / name)
        packed(made, root)
        rows = read_rows_of(root, Catalogue(root).name(0))
        assert {row.device for row in rows} == {"a" if name == "one" else None}


def test_the_index_says_where_every_pair_lies_and_what_photos_tsv_knows(made, tmp_path):
    root = Address(tmp_path / "shards")
    packed(made, root)
    catalogue = Catalogue(root)
    rows = [row for n in range(len(catalogue)) for row in read_rows_of(root, catalogue.name(n))]
    assert len({row.name for row in rows}) == len(rows) == 23
    for row in rows:
        assert (made / row.side / "photo" / row.name).is_file()
        assert row.photo.startswith(f"'{row.folder}/{row.side}.")
        assert row.name == f"{row.pair}.png"
        assert row.near_duplicate == (".000" in row.photo)
        assert row.device is None
        assert row.shard.startswith(f"shards/{row.side}-")
    assert {row.folder for row in rows} == {"a", "b"}
    for number in range(len(catalogue)):  # of one side and one folder
        of = [row for row in rows if row.shard == shard_path(catalogue.name(number))]
        assert len({(row.side, row.folder) for row in of}) == 1
        assert len(of) == catalogue.pairs[number] <= 4
        assert [row.offset for row in of] == np.cumsum([0, *(r.size for r in of)])[:-1].tolist()
    parts = parquet.read_table(tmp_path / "shards" / "index")  # one table for whoever asks
    assert parts.num_rows == 23


def test_pairs_are_read_as_from_the_folder(made, tmp_path):
    root = Address(tmp_path / "shards")
    packed(made, root)
    for side, wanted in find_pairs(made, None, 0.1, 0).items():
        found = side_of(root, side)
        assert len(found) == len(wanted)
        by_name = {pair.name: pair for pair in found}
        for pair in wanted:
            for swap in (False, True):
                for got, there in zip(by_name[pair.name].read(swap=swap), pair.read(swap=swap),
                                      strict=True):  # fmt: skip
                    assert np.array_equal(got, there)
    names = [pair.name for pair in side_of(root, "train")]
    assert names != sorted(names)  # dealt out, so that a shard is a fair sample


@pytest.mark.parametrize("codec", ["qoi", "raw", "png"])
@pytest.mark.parametrize("size", [SIDE, 48])
def test_samples_are_the_pictures_whichever_way_they_come(made, tmp_path, codec, size):
    for path in sorted((made / "train/stylized").iterdir())[::2]:
        with Image.open(path) as opaque:
            opaque.putalpha(80)
            opaque.save(path)
    root = Address(tmp_path / "shards")
    packed(made, root, codec=codec)
    pairs = side_of(root, "train")
    for swap in (False, True):
        data = PairSet(pairs, size, train=False, swap=swap)
        for number, pair in enumerate(pairs):
            squares = [as_square(picture, size, None) for picture in pair.read(swap=swap)]
            sample = data[number]
            for key, wanted in zip(("photo", "target"), squares, strict=True):
                assert np.array_equal(sample[key], wanted)


def test_a_system_without_pread_reads_the_same(made, tmp_path, monkeypatch):
    root = Address(tmp_path / "shards")
    packed(made, root)
    wanted = [np.asarray(pair.read()) for pair in side_of(root, "train")]
    monkeypatch.delattr(os, "pread")
    pairs = side_of(root, "train")
    for number in reversed(range(len(pairs))):
        assert np.array_equal(np.asarray(pairs[number].read()), wanted[number])
    (tmp_path / "short").write_bytes(b"0123456789")
    with (tmp_path / "short").open("rb") as short:
        assert read_at(short.fileno(), 4, 8) == b"89"
        assert read_at(short.fileno(), 4, 2) == b"2345"


@pytest.mark.parametrize("alpha", [False, True])
def test_transparency_is_kept_where_there_is_some(tmp_path, alpha):
    own = tmp_path / "own"
    for i in range(8):
        for name, see_through in (("A", False), ("B", i % 2)):
            colour = (i, 99, 30, 51 if see_through else 255)
            (own / name).mkdir(parents=True, exist_ok=True)
            Image.new("RGBA", (SIDE, SIDE), colour).save(own / name / f"{i}.png")
    root = Address(tmp_path / "shards")
    packed(own, root)
    found = {pair.name: pair for pair in side_of(root, "train")}
    wanted = find_pairs(own, None, *SPLIT)["train"]
    assert found
    for pair in wanted:
        for got, there in zip(found[pair.name].read(alpha), pair.read(alpha), strict=True):
            assert got.mode == there.mode
            assert np.array_equal(got, there)
    with pytest.raises(DistillError, match=r"has transparency, which codec=jpeg does not keep"):
        packed(own, Address(tmp_path / "jpeg"), codec="jpeg")


def test_pairs_side_by_side_and_without_sides_are_split_and_come_back_as_two_folders(tmp_path):
    own, rng = tmp_path / "own", np.random.default_rng(0)
    own.mkdir()
    for i in range(10):
        both = rng.integers(0, 256, (64, 131, 3), np.uint8)
        Image.fromarray(both).save(own / f"{i}.png")
    root = Address(tmp_path / "shards")
    assert sum(packed(own, root).counts.values()) == 10
    assert "teacher" not in finished_shards(root).recipe
    unpack(root, tmp_path / "back")
    wanted = find_pairs(own, None, *SPLIT)
    back = find_pairs(tmp_path / "back", None, *SPLIT)
    for side, pairs in wanted.items():
        assert sorted(p.name for p in pairs) == [p.name for p in back[side]]
        there = {pair.name: pair for pair in back[side]}
        for pair in pairs:
            for got, want in zip(there[pair.name].read(), pair.read(), strict=True):
                assert np.array_equal(got, want)


def test_a_second_time_makes_nothing_and_one_changed_pair_one_shard(made, tmp_path):
    root = Address(tmp_path / "shards")
    packed(made, root)
    before = contents(tmp_path / "shards")
    assert packed(made, root).made == 0
    assert contents(tmp_path / "shards") == before
    changed = next((made / "train/stylized").iterdir())
    Image.new("RGB", (SIDE, SIDE)).save(changed)
    assert packed(made, root).made == 1
    black = next(pair for pair in side_of(root, "train") if pair.name == changed.name)
    assert not np.asarray(black.read()[1]).any()


@pytest.mark.parametrize("harm", ["cut", "flipped", "gone", "part gone", "part damaged"])
def test_a_damaged_shard_is_made_anew(made, tmp_path, harm):
    root = Address(tmp_path / "shards")
    packed(made, root)
    before = contents(tmp_path / "shards")
    tar = tmp_path / "shards/shards/train-000001.tar"
    part = tmp_path / "shards/index/train-000001.parquet"
    if harm == "cut":
        tar.write_bytes(tar.read_bytes()[:-600])
    elif harm == "flipped":
        tar.write_bytes(tar.read_bytes()[:700] + b"?" + tar.read_bytes()[701:])
    elif harm == "part damaged":
        part.write_bytes(b"PAR1")
    else:
        (tar if harm == "gone" else part).unlink()
    assert packed(made, root).made == 1
    assert contents(tmp_path / "shards") == before


@pytest.mark.parametrize("which", ["names", "teacher"])
def test_shards_of_another_set_are_not_replaced(made, tmp_path, which):
    root = Address(tmp_path / "shards")
    packed(made, root)
    before = contents(tmp_path / "shards")
    if which == "names":
        other = write_set(tmp_path / "other", {"train": {"c": 3}, "val": {"c": 2}})
    else:  # the same photos, drawn by another
        other = shutil.copytree(made, tmp_path / "other")
        manifest = json.loads((other / "dataset.json").read_text())
        manifest["recipe"]["teacher"] = "another"
        (other / "dataset.json").write_text(json.dumps(manifest))
        for drawing in other.glob("*/stylized/*.png"):
            os.utime(drawing, (1, 1))
    with pytest.raises(DistillError, match=r"output=.*shards: holds shards of another set than"):
        packed(other, root)
    assert contents(tmp_path / "shards") == before


def test_a_set_of_one_shard_whose_index_is_damaged_is_mended(made, tmp_path):
    root = Address(tmp_path / "shards")
    packed(made, root, per_shard=100)
    before = contents(tmp_path / "shards")
    for part in (tmp_path / "shards/index").iterdir():
        part.write_bytes(b"PAR1")
    packed(made, root, per_shard=100)
    assert contents(tmp_path / "shards") == before


def test_fewer_shards_than_before_leave_none_behind(made, tmp_path):
    root = Address(tmp_path / "shards")
    packed(made, root, per_shard=2)
    report = packed(made, root, per_shard=8)
    assert len(list((tmp_path / "shards/shards").iterdir())) == report.shards
    assert len(list((tmp_path / "shards/index").iterdir())) == report.shards
    assert len(side_of(root, "train")) == 16


def test_two_at_once_and_other_kinds_of_folders_are_refused(made, tmp_path):
    root = Address(tmp_path / "shards")
    (tmp_path / "shards").mkdir()
    with (
        FileLock(tmp_path / "shards/.lock"),
        pytest.raises(DistillError, match=r"is writing into.*output=DIR"),
    ):
        packed(made, root)
    with pytest.raises(DistillError, match="holds a set of another kind"):
        packed(made, Address(write_set(tmp_path / "other", COUNTS)))
    packed(made, root)
    with pytest.raises(DistillError, match="holds shards; add data=shards"):
        find_pairs(tmp_path / "shards", None, 0.1, 0)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/thing.txt").touch()
    with pytest.raises(DistillError, match="not empty, and no copy of this set"):
        unpack(root, tmp_path / "full")


def test_a_pair_that_cannot_be_read_is_left_out_and_named(made, tmp_path, capsys):
    bad = sorted((made / "train/photo").iterdir())[3]
    bad.write_bytes(bad.read_bytes()[:100])
    report = packed(made, Address(tmp_path / "shards"))
    assert (report.skipped, report.counts["train"]) == (1, 15)
    assert "cannot be read: 1 pair" in str(report)
    assert bad.name in "".join(capsys.readouterr())


@pytest.mark.parametrize("checked_by", ["crc32", "sha256"])
def test_damaged_bytes_are_a_bad_photo_and_missing_shards_one_line(made, tmp_path, checked_by):
    root = Address(tmp_path / "shards")
    packed(made, root, codec="raw")
    if checked_by == "sha256":  # an index of an earlier version
        for part in (tmp_path / "shards/index").iterdir():
            parquet.write_table(parquet.read_table(part).drop_columns(["crc32"]), part)
    tar = tmp_path / "shards" / shard_path("train-000000")
    content = bytearray(tar.read_bytes())
    content[900] ^= 1  # a pixel, which no decoder would notice
    tar.write_bytes(content)
    pairs = side_of(root, "train")
    with pytest.raises(BadPhoto, match="not the bytes of the index"):
        pairs[0].read()
    assert pairs[1].read()
    (tmp_path / "shards" / shard_path("train-000001")).unlink()
    with pytest.raises(DistillError, match=r"train-000001\.tar: not there"):
        pairs[4].read()


def test_unpacking_goes_on_where_it_was_stopped(made, tmp_path, monkeypatch):
    root, back = Address(tmp_path / "shards"), tmp_path / "back"
    packed(made, root)
    real, done = unpacking.save_png, []

    def failing(image, path):
        if len(done) == 7:
            raise KeyboardInterrupt
        done.append(path)
        real(image, path)

    monkeypatch.setattr(unpacking, "save_png", failing)
    with pytest.raises(KeyboardInterrupt):
        unpack(root, back)
    monkeypatch.setattr(unpacking, "save_png", real)
    assert not (back / "dataset.json").exists()
    assert unpack(root, back).new == 23 - 3
    assert pixels(back) == pixels(made)
    assert unpack(root, back).new == 0


def test_held_out_pairs_become_a_folder_once(made, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DISTILL_CACHE", str(tmp_path / "cache"))
    root = Address(tmp_path / "shards")
    packed(made, root)
    folder = held_out_folder(root)
    held = {name: each for name, each in pixels(made).items() if not name.startswith("train")}
    assert pixels(folder) == held
    assert (folder / "photos.tsv").is_file()
    assert "once" in capsys.readouterr().out
    assert held_out_folder(root) == folder
    assert "once" not in capsys.readouterr().out


def test_an_unfinished_set_is_neither_packed_nor_trained_on(made, tmp_path):
    root = Address(tmp_path / "shards")
    with pytest.raises(DistillError, match="no shards there"):
        finished_shards(root)
    packed(made, root)
    manifest = tmp_path / "shards/dataset.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"counts": None}))
    with pytest.raises(DistillError, match="shards that are not finished"):
        finished_shards(root)
    manifest.write_text("{")
    with pytest.raises(DistillError, match="damaged"):
        finished_shards(root)
    made_of = made / "dataset.json"
    made_of.write_text(json.dumps(json.loads(made_of.read_text()) | {"counts": None}))
    with pytest.raises(DistillError, match="a set that is not finished"):
        packed(made, Address(tmp_path / "others"))


def test_the_catalogue_is_parquet_for_everybody(made, tmp_path):
    packed(made, Address(tmp_path / "shards"))
    table = parquet.read_table(io.BytesIO((tmp_path / "shards/shards.parquet").read_bytes()))
    assert table["pairs"].to_pylist() == [4, 4, 3, 4, 1, 3, 2, 2]
    assert table["folder"].to_pylist() == ["a", "a", "a", "b", "b", "a", "a", "b"]


@pytest.mark.parametrize("layout", [["..", "b"], ["a/b", "c"], ["", "a"], ["a"], [1, 2], "ab"])
def test_a_layout_that_leads_elsewhere_is_damaged(made, tmp_path, layout):
    packed(made, Address(tmp_path / "s"))
    path = tmp_path / "s" / "dataset.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"layout": layout}))
    with pytest.raises(DistillError, match=r"dataset\.json: damaged; delete it"):
        unpack(Address(tmp_path / "s"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("path", "column", "values", "said"),
    [
        ("shards.parquet", "pairs", -1, "pairs is -1 to"),
        ("shards.parquet", "pairs", 9, r"train-000000\.parquet: pairs: 4, 9 in the catalogue"),
        ("shards.parquet", "sha256", None, "sha256 is missing in a row"),
        ("shards.parquet", "shard", "x" * 9, "index/xxxxxxxxx.parquet: not there"),
        ("index/train-000000.parquet", "offset", -5, "offset is -5 to"),
        ("index/train-000000.parquet", "size", 2**40, "size is .* to 1099511627776"),
        ("index/train-000000.parquet", "offset", "far", r"damaged \("),
    ],
)
def test_an_index_that_cannot_be_is_damaged(made, tmp_path, path, column, values, said):
    packed(made, Address(tmp_path / "s"))
    table = parquet.read_table(tmp_path / "s" / path)
    changed = [values, *table[column].to_pylist()[1:]]
    if isinstance(values, str):
        changed = [str(each) for each in changed]
    place = table.column_names.index(column)
    parquet.write_table(table.set_column(place, column, [changed]), tmp_path / "s" / path)
    with pytest.raises(DistillError, match=said):
        unpack(Address(tmp_path / "s"), tmp_path / "out")


def test_the_index_holds_both_checksums_of_each_pair(made, tmp_path):
    packed(made, Address(tmp_path / "s"))
    table = parquet.read_table(tmp_path / "s/index/train-000000.parquet")
    content = (tmp_path / "s/shards/train-000000.tar").read_bytes()
    for row in table.to_pylist():
        record = content[row["offset"] : row["offset"] + row["size"]]
        assert row["sha256"] == hashlib.sha256(record).hexdigest()
        assert row["crc32"] == zlib.crc32(record)


@pytest.mark.parametrize("path", ["shards.parquet", "index/train-000000.parquet"])
def test_an_index_whose_text_is_none_is_damaged(made, tmp_path, path):
    packed(made, Address(tmp_path / "s"))
    file = tmp_path / "s" / path
    parquet.write_table(parquet.read_table(file), file, compression="none", use_dictionary=False)
    content = file.read_bytes()
    assert b"train" in content
    file.write_bytes(content.replace(b"train", b"tr\xe9in"))
    with pytest.raises(DistillError, match=r"parquet: damaged \("):
        unpack(Address(tmp_path / "s"), tmp_path / "out")


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts open files in /proc")
def test_the_files_of_shards_are_closed(made, tmp_path):
    root = Address(tmp_path / "shards")
    packed(made, root)
    before = len(os.listdir("/proc/self/fd"))
    for number in range(5):
        unpack(root, tmp_path / str(number))
    assert len(os.listdir("/proc/self/fd")) == before
