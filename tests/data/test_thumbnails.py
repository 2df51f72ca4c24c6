import os

import numpy as np
import pytest
from PIL import Image
from skimage import data

from distill.core.files import cache_folder
from distill.data import thumbnails as module
from distill.data.address import folder_at
from distill.data.duplicates import similar_pairs
from distill.data.listing import StoredPhoto
from distill.data.photos import Photo, read_photo
from distill.data.thumbnails import thumbnail, thumbnails, thumbnails_of
from support.odd_encodings import SRGB, gamma, profile
from support.stored_photos import upload

PICTURES = {
    name: Image.fromarray(getattr(data, name)())
    for name in ("astronaut", "chelsea", "coffee", "rocket")
}


@pytest.fixture
def photos(tmp_path):
    for name, image in PICTURES.items():
        image.save(tmp_path / f"{name}.jpg")
    return [Photo(tmp_path / f"{name}.jpg", f"{name}.jpg") for name in PICTURES]


def test_a_thumbnail_is_the_mean_grey_of_the_centre_square(tmp_path):
    """What is left and right of the square does not count; the square has four grey quarters."""
    grey = np.zeros((64, 96, 3), np.uint8)
    grey[:32, 16:48], grey[:32, 48:80], grey[32:, 16:48], grey[32:, 48:80] = 40, 80, 120, 160
    Image.fromarray(grey).save(tmp_path / "quarters.png")
    made = thumbnail(tmp_path / "quarters.png")
    for name, size in (("small", 16), ("large", 32)):
        picture, edge = made[name], size // 2
        assert picture.shape == (size, size)
        # A pixel beside a border takes in some of what is beyond it.
        corners = picture[1 :: size - 3, 1 :: size - 3]
        inner = picture[edge - 2 : edge + 3 : 4, edge - 2 : edge + 3 : 4]
        assert corners.tolist() == inner.tolist() == [[40, 80], [120, 160]]


def test_of_an_upright_photo_the_square_is_in_the_middle_too(tmp_path):
    grey = np.zeros((96, 64, 3), np.uint8)
    grey[16:48], grey[48:80] = 40, 120
    Image.fromarray(grey).save(tmp_path / "halves.png")
    made = thumbnail(tmp_path / "halves.png")["small"]
    assert (made[1:7] == 40).all()
    assert (made[9:15] == 120).all()


def test_a_colour_profile_changes_no_thumbnail(tmp_path):
    """It would cost more than all the rest, and moves a grey by little."""
    picture = PICTURES["chelsea"].resize((64, 64))
    picture.save(tmp_path / "plain.png")
    picture.save(tmp_path / "wide.png", icc_profile=profile(SRGB, gamma(1)))
    assert (np.asarray(read_photo(tmp_path / "wide.png")) != np.asarray(picture)).any()
    assert thumbnail(tmp_path / "wide.png") == thumbnail(tmp_path / "plain.png")


@pytest.mark.parametrize(("stored", "wanted"), [(False, 2), (True, 8)])
def test_more_threads_wait_for_a_store_than_read_files(photos, monkeypatch, stored, wanted):
    counts, real = [], module.ThreadPoolExecutor
    monkeypatch.setattr(
        module, "ThreadPoolExecutor", lambda *given: counts.append(given) or real(*given)
    )
    paths = [photo.path for photo in photos]
    plain = thumbnails_of(paths, threads=2)
    if stored:
        address = upload(paths[0].parent, "memory://thumbnails")
        paths = [StoredPhoto(folder_at(address), path.name, -1, "") for path in paths]
        counts.clear()
        assert (thumbnails_of(paths, threads=2) == plain).all()
    assert counts == [(wanted,)]


def test_a_thumbnail_is_made_once_and_again_when_the_file_changes(photos, monkeypatch):
    seen = []

    def counted(path):
        seen.append(path.stem)
        return thumbnail(path)

    monkeypatch.setattr(module, "thumbnail", counted)
    first = thumbnails(photos, "cache")
    assert sorted(seen) == sorted(PICTURES)
    assert (thumbnails(photos[::-1], "cache") == first[::-1]).all()
    assert len(seen) == 4
    PICTURES["coffee"].save(photos[0].path)
    photos[1].path.touch()
    again = thumbnails(photos, "cache")
    assert sorted(seen[4:]) == ["astronaut", "chelsea"]
    assert (again[0]["small"] == again[2]["small"]).mean() > 0.9  # now coffee too
    assert len(similar_pairs(again)) == 1


def test_photos_whose_names_are_no_utf_8_are_told_apart(tmp_path):
    names = [os.fsdecode(b"caf\xe9.png"), os.fsdecode(b"caf\xe8.png")]
    for name, level in zip(names, (40, 200), strict=True):
        Image.new("L", (64, 64), level).save(tmp_path / name)
    found = [Photo(tmp_path / name, name) for name in names]
    for _ in range(2):  # made, then from the cache
        assert thumbnails(found, "odd names")["small"].mean((1, 2)).tolist() == [40, 200]


def test_a_kill_loses_a_part_only(photos, monkeypatch):
    monkeypatch.setattr(module, "SAVE_EVERY", 2)
    seen = []

    def dies(path):
        seen.append(path)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return thumbnail(path)

    monkeypatch.setattr(module, "thumbnail", dies)
    with pytest.raises(KeyboardInterrupt):
        thumbnails(photos, "killed")
    monkeypatch.setattr(module, "thumbnail", lambda path: seen.append(path) or thumbnail(path))
    seen.clear()
    thumbnails(photos, "killed")
    assert len(seen) == 2


@pytest.mark.parametrize("content", [b"", b"no array", np.arange(3).tobytes()])
def test_a_damaged_cache_is_made_anew(photos, content):
    first = thumbnails(photos, f"damaged {content!r}")
    for file in (cache_folder() / "thumbnails").glob("*.npy"):
        file.write_bytes(content)
    assert (thumbnails(photos, f"damaged {content!r}") == first).all()


def test_the_cache_of_an_older_version_is_made_anew(photos):
    first = thumbnails(photos, "older")
    older = np.zeros(4, np.dtype([("id", "V16"), ("picture", "u1", (16, 16))]))
    for file in (cache_folder() / "thumbnails").glob("*.npy"):
        np.save(file, older)
    assert (thumbnails(photos, "older") == first).all()


def test_a_cache_that_cannot_be_written_is_done_without(photos, monkeypatch):
    def full(_path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("distill.data.thumbnails.atomic_write", full)
    assert thumbnails(photos, "full")["small"].any((1, 2)).all()


def test_a_large_jpeg_is_decoded_at_an_eighth(tmp_path, monkeypatch):
    Image.new("RGB", (1600, 1200), "teal").save(tmp_path / "large.jpg")
    seen, real = [], module.upright
    monkeypatch.setattr(module, "upright", lambda image: seen.append(image.size) or real(image))
    thumbnail(tmp_path / "large.jpg")
    assert seen == [(200, 150)]
