"""A photo at an address: read as a file is, and no fault of its own when the store fails."""

import pickle
from io import BytesIO

import fsspec
import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from distill.core.errors import DistillError
from distill.data import listing
from distill.data import thumbnails as thumbnails_module
from distill.data.address import Address
from distill.data.photos import BadPhoto, find_photos, read_photo
from distill.data.thumbnails import thumbnails
from support.labelling import add
from support.stored_photos import upload

pytest.importorskip("pyarrow", reason="needs the extra shards")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(listing, "PAUSES", (0.0, 0.0))
    add(tmp_path / "photos", *range(4))
    return tmp_path / "photos"


@pytest.fixture
def address(folder):
    return Address(upload(folder, f"memory://{folder.parent.name}/photos"))


def write(address, name, content):
    fsspec.filesystem("memory").pipe_file(f"/{address.text.partition('://')[2]}/{name}", content)


class Shaky:
    """Reads fail so many times, with this error or cut short."""

    def __init__(self, monkeypatch, failures, error):
        self.left, self.error, self.asked = failures, error, 0
        plain = MemoryFileSystem.cat_file

        def cat_file(fs, path, *args, **kwargs):
            self.asked += 1
            content = plain(fs, path, *args, **kwargs)
            if self.left:
                self.left -= 1
                if self.error is None:
                    return content[:-5]
                raise self.error
            return content

        monkeypatch.setattr(MemoryFileSystem, "cat_file", cat_file)


def test_it_is_the_picture_of_the_file(folder, address):
    for there, here in zip(find_photos(address), find_photos(folder), strict=True):
        assert read_photo(there.path).tobytes() == read_photo(here.path).tobytes()
        sent = pickle.loads(pickle.dumps(there))
        assert (sent.key, sent.pair_name) == (here.key, here.pair_name)
        assert sent.path.read() == here.path.read_bytes()


@pytest.mark.parametrize("error", [ConnectionResetError("reset by peer"), TimeoutError(), None])
def test_a_read_that_fails_is_tried_again(address, monkeypatch, error):
    store = Shaky(monkeypatch, 2, error)
    assert read_photo(find_photos(address)[0].path).size == (72, 64)
    assert store.asked == 3


@pytest.mark.parametrize(
    ("error", "said", "asked"),
    [
        (ConnectionResetError("reset by peer"), "reset by peer", 3),
        (PermissionError("Forbidden"), "Forbidden", 1),
        (None, r"\d+ of \d+ bytes came", 3),
    ],
)
def test_a_store_that_fails_on_is_an_error_and_no_bad_photo(
    address, monkeypatch, error, said, asked
):
    store, found = Shaky(monkeypatch, 99, error), find_photos(address)
    line = rf"photos/0\.png: cannot be read \({said}\); run it again to resume, drop=FILE"
    with pytest.raises(DistillError, match=line):
        read_photo(found[0].path)
    assert store.asked == asked
    with pytest.raises(DistillError, match="cannot be read"):
        thumbnails(found, address.text)


def test_what_is_gone_or_empty_is_a_bad_photo_at_once(address, monkeypatch):
    found = find_photos(address)
    write(address, "0.png", b"")
    write(address, "1.png", b"no picture")
    fsspec.filesystem("memory").rm_file(f"/{address.text.partition('://')[2]}/2.png")
    for photo, reason in zip(found, ("the file is empty", "not a picture", "no longer there")):  # noqa: B905
        with pytest.raises(BadPhoto, match=reason):
            read_photo(photo.path)


def test_one_that_was_replaced_since_it_was_listed_is_read_as_it_is_now(address):
    found, other = find_photos(address), BytesIO()
    read_photo(find_photos(address)[1].path).resize((100, 90)).save(other, "PNG")
    write(address, "0.png", other.getvalue())
    assert read_photo(found[0].path).size == (100, 90)


def test_thumbnails_are_those_of_the_files_and_ask_the_store_for_nothing_else(
    folder, address, monkeypatch
):
    there = find_photos(address)
    store, asked = Shaky(monkeypatch, 0, None), []
    monkeypatch.setattr(MemoryFileSystem, "info", lambda *_args, **_more: asked.append(1))
    made = thumbnails(there, address.text)
    assert (made == thumbnails(find_photos(folder), str(folder))).all()
    assert (store.asked, asked) == (4, [])
    assert (thumbnails(there[::-1], address.text) == made[::-1]).all()
    assert (store.asked, asked) == (4, [])


def test_a_thumbnail_is_made_again_when_the_listing_says_that_the_file_changed(
    folder, address, monkeypatch
):
    made, seen = thumbnails(find_photos(address), address.text), []
    write(address, "2.png", (folder / "3.png").read_bytes())
    plain = thumbnails_module.thumbnail
    monkeypatch.setattr(
        thumbnails_module, "thumbnail", lambda path: seen.append(path.key) or plain(path)
    )
    again = thumbnails(find_photos(address), address.text)
    assert seen == ["2.png"]
    assert np.array_equal(again[2], made[3])
    assert np.array_equal(again[[0, 1, 3]], made[[0, 1, 3]])
