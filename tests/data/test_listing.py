"""Photos at an address: which are found, when they are listed again, and what is kept of it."""

import sys
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.spec import AbstractFileSystem

from distill.core.errors import DistillError
from distill.core.files import cache_folder
from distill.data import listing
from distill.data.address import Address, folder_at
from distill.data.photos import check_folders, find_all, find_photos, folder_names
from support.labelling import add
from support.stored_photos import upload

pytest.importorskip("pyarrow", reason="needs the extra shards")


@pytest.fixture
def folder(tmp_path):
    """Photos, and what is left out beside them."""
    root = tmp_path / "photos"
    add(root / "a", 1, 2)
    add(root / "b" / "c", 3)
    (root / "a-b.JPEG").write_bytes(b"a photo, by its name")
    for other in ("notes.txt", ".hidden.png", ".folder/1.png", "b/.d/e/2.png", "jpg"):
        path = root / other
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"left out")
    for ours in ("b/set/dataset.json", "run/config.yaml"):
        add((root / ours).parent / "train" / "photo", 5)
        (root / ours).write_text("{}")
    return root


@pytest.fixture
def address(folder):
    return folder_at(upload(folder, f"memory://{folder.parent.name}/photos"))


def keys(found):
    return [photo.key for photo in found]


def write(address, name, content=b"bytes"):
    fsspec.filesystem("memory").pipe_file(f"/{address.text.partition('://')[2]}/{name}", content)


def kept():
    return list((cache_folder() / "listings").glob("*.parquet"))


@pytest.fixture
def slow(monkeypatch, tmp_path):
    """A cache of its own, and every listing is one that took long."""
    monkeypatch.setenv("DISTILL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(listing, "LONG", -1.0)


def test_what_is_found_is_what_a_folder_would_give_in_its_order(folder, address):
    found = find_photos(address)
    assert keys(found) == ["a/1.png", "a/2.png", "a-b.JPEG", "b/c/3.png"]
    assert keys(found) == keys(find_photos(folder))
    assert [p.pair_name for p in found] == [p.pair_name for p in find_photos(folder)]
    assert str(found[0].path) == f"{address}/a/1.png"


def test_an_address_that_is_itself_a_set_of_ours_is_looked_into(address):
    write(address, "dataset.json")
    assert len(find_photos(address)) == 4


def test_size_and_stamp_are_those_of_the_store(folder, address):
    first = find_photos(address)[0].path
    about = fsspec.filesystem("memory").info(f"/{folder.parent.name}/photos/a/1.png")
    assert first.size == about["size"] == (folder / "a/1.png").stat().st_size
    before = first.stamp
    write(address, "a/1.png", b"another")
    after = find_photos(address)[0].path
    assert (after.size, after.stamp != before) == (7, True)


@pytest.mark.parametrize(
    ("about", "stamp"),
    [
        ({"ETag": '"5d"', "LastModified": 3}, '"5d"'),
        ({"etag": "CJ", "updated": "2024"}, "CJ"),
        ({"mtime": 12.5, "created": 1}, "12.5"),
        ({"size": 4}, ""),
    ],
)
def test_the_stamp_is_the_surest_that_a_store_gives(about, stamp):
    assert listing._stamp(about) == stamp


def test_what_is_quick_to_list_is_listed_every_time(address, capsys):
    find_photos(address)
    write(address, "a/new.png")
    assert "a/new.png" in keys(find_photos(address))
    assert capsys.readouterr().out == f"{address}: listing what is there\n" * 2


def test_what_took_long_is_kept_and_said_with_its_time(address, slow, capsys):
    first = find_photos(address)
    write(address, "a/new.png")
    capsys.readouterr()
    assert find_photos(address) == first
    said = capsys.readouterr().out
    assert said.startswith(f"{address}: 4 photos as listed on 20")
    assert said.endswith("which took 0 s; label.listing=new lists them again\n")
    assert "a/new.png" in keys(find_photos(address, listing="new"))
    assert "a/new.png" in keys(find_photos(address))


def test_kept_takes_whatever_there_is(address):
    first = find_photos(address, listing="kept")
    write(address, "a/new.png")
    assert find_photos(address, listing="kept") == first


def test_each_address_has_a_listing_of_its_own(folder, slow):
    for name in "ab":
        upload(folder / name, f"memory://{folder.parent.name}/{name}/same")
    for _ in range(2):
        found = [
            keys(find_photos(Address(f"memory://{folder.parent.name}/{n}/same"))) for n in "ab"
        ]
        assert found == [["1.png", "2.png"], ["c/3.png"]]
    assert len(kept()) == 2


@pytest.mark.parametrize("harm", ["empty", "cut", "another", "columns", "moved"])
def test_a_damaged_listing_is_made_anew(address, slow, harm, capsys):
    import pyarrow
    import pyarrow.parquet as parquet

    first = find_photos(address)
    (file,) = kept()
    table = parquet.read_table(file)
    if harm == "empty":
        file.write_bytes(b"")
    elif harm == "cut":
        file.write_bytes(file.read_bytes()[:-20])
    elif harm == "another":
        parquet.write_table(pyarrow.table({"key": ["a"]}), file)
    elif harm == "columns":
        none = pyarrow.array([None] * len(table), pyarrow.int64())
        parquet.write_table(table.set_column(1, "size", none), file)
    else:  # of another address
        about = {b"distill": table.schema.metadata[b"distill"].replace(b"memory", b"elsewhere")}
        parquet.write_table(table.replace_schema_metadata(about), file)
    capsys.readouterr()
    assert find_photos(address) == first
    assert capsys.readouterr().out == f"{address}: listing what is there\n"
    find_photos(address)
    assert "as listed on" in capsys.readouterr().out


def test_a_cache_that_cannot_be_written_is_done_without(address, slow, monkeypatch):
    def full(_path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(listing, "atomic_write", full)
    assert len(find_photos(address)) == 4
    assert not kept()


def test_a_name_that_is_no_text_is_left_out_and_said(address, capsys):
    write(address, "a/\udcff.png")
    assert len(find_photos(address)) == 4
    assert "left out 'a/\\udcff.png': its name is no text" in capsys.readouterr().out


def test_folders_and_addresses_together_are_told_apart_by_name(folder, address, tmp_path):
    add(tmp_path / "more", 8)
    found = find_all([address, tmp_path / "more"], [folder / "a"])
    assert keys(found) == [
        *("photos/a/1.png", "photos/a/2.png", "photos/a-b.JPEG", "photos/b/c/3.png"),
        *("more/8.png", "a/1.png", "a/2.png"),
    ]
    assert [photo.side for photo in found] == ["train"] * 5 + ["val"] * 2
    assert folder_names([address, folder]) == ["photos", "photos-2"]
    with pytest.raises(DistillError, match="named twice"):
        find_all([address, Address(f"{address}/")], [])


def test_where_nothing_is_it_is_one_line(address):
    nowhere = Address(f"{address}/nowhere")
    for look in (find_photos, lambda folder: check_folders([folder], [])):
        with pytest.raises(DistillError, match="nowhere: no such folder or bucket, or it may not"):
            look(nowhere)
    write(address, "texts/a.txt")
    with pytest.raises(DistillError, match="texts: no pictures in it"):
        find_photos(Address(f"{address}/texts"))


def test_whether_it_is_there_is_told_without_listing(address, monkeypatch):
    def listed(*_args, **_more):
        raise AssertionError("listed")

    for name in ("find", "ls", "walk", "isdir"):
        monkeypatch.setattr(MemoryFileSystem, name, listed)
    check_folders([address], [])


def test_what_is_missing_is_named(address, monkeypatch):
    monkeypatch.setitem(sys.modules, "adlfs", None)
    with pytest.raises(DistillError, match=r"Install adlfs .*pip install it"):
        folder_at("abfs://container/folder")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DistillError, match=r"pip install pyarrow"):
        find_photos(address)


def test_a_file_address_is_a_folder():
    assert folder_at("file:///tmp/photos") == Path("/tmp/photos")
    assert folder_at("photos/") == Path("photos")
    assert folder_at("") == Path()


def test_a_folder_that_fails_below_is_an_error_and_not_left_out(address, monkeypatch):
    """fsspec's own way from folder to folder leaves out what fails, and nobody hears of it."""
    ls = MemoryFileSystem.ls

    def shaky(self, path, detail=True, **kwargs):
        if path.endswith("/b"):
            raise OSError(5, "Input/output error")
        return ls(self, path, detail, **kwargs)

    monkeypatch.setattr(MemoryFileSystem, "find", AbstractFileSystem.find)
    assert len(find_photos(address)) == 4
    monkeypatch.setattr(MemoryFileSystem, "ls", shaky)
    with pytest.raises(DistillError, match=r"photos: cannot be reached \(.*Input/output"):
        find_photos(address)
