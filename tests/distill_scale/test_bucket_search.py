"""More photos than can all be compared: those that share a bucket are."""

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from distill.core.errors import DistillError
from distill.data import duplicates as module
from distill.data.duplicates import find_near_duplicates, similar_pairs
from distill.data.photos import Photo, find_photos
from distill.data.thumbnails import THUMBNAIL, thumbnails
from distill_scale import bucket_search


@pytest.fixture
def few_are_compared(monkeypatch):
    pytest.importorskip("faiss", reason="needs the extra scale")
    monkeypatch.setattr(module, "EXACT", 5)


def varied(count):
    """Thumbnails of soft pictures, and of every third one a copy: as it is, mirrored, rotated."""
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (count, 6, 6), np.uint8)
    made, last = np.zeros(count, THUMBNAIL), Image.new("L", (64, 64))
    for i, each in enumerate(noise):
        picture = Image.fromarray(each).resize((64, 64), Image.Resampling.BICUBIC)
        if i % 3 == 1:
            turned = last.rotate(5 * (i % 11) - 25, Image.Resampling.BICUBIC)
            picture = [last, ImageOps.mirror(last), turned, ImageOps.mirror(turned)][i // 3 % 4]
        last = picture
        for name in ("small", "large"):
            made[name][i] = np.asarray(picture.resize(made[name].shape[1:]))
    return made


@pytest.mark.campaign
def test_pairs_in_buckets_are_those_that_comparing_all_finds(few_are_compared, monkeypatch):
    made = varied(600)
    expected = module.all_pairs(made).tolist()
    assert {(i, i + 1) for i in range(0, 600, 3)} <= set(map(tuple, expected))
    monkeypatch.setattr(bucket_search, "BLOCK", 70)
    monkeypatch.setattr(bucket_search, "PART", 9)
    monkeypatch.setattr(bucket_search, "PRODUCTS", 25)  # fewer than a bucket has with its forms
    assert similar_pairs(made).tolist() == sorted(expected)


@pytest.mark.parametrize("exact", [5, 10**6])
def test_of_two_sets_only_pairs_across_are_given(few_are_compared, monkeypatch, exact):
    monkeypatch.setattr(module, "EXACT", exact)
    monkeypatch.setattr(module, "BLOCK", 16)
    made = varied(90)
    made = np.concatenate([made[::2], made[1::2]])  # copies are in the other half, or in the same
    across = [pair for pair in module.all_pairs(made).tolist() if pair[0] < 45 <= pair[1]]
    assert len(across) == 30
    assert sorted(similar_pairs(made, first=45).tolist()) == sorted(across)


def test_a_large_set_of_few_comparisons_is_compared_whole(few_are_compared, monkeypatch):
    """Three pictures against many: no buckets, and no faiss."""
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr(module, "EXACT", 20)
    assert similar_pairs(varied(60), first=3).tolist() == []


def test_flat_pictures_in_buckets_are_near_duplicates_of_none(few_are_compared):
    made = varied(40)
    made[:30] = np.zeros((), THUMBNAIL)
    found = similar_pairs(made)
    assert found.min() >= 30
    assert found.tolist() == sorted(module.all_pairs(made).tolist())
    assert not len(similar_pairs(np.zeros(20, THUMBNAIL)))


def test_without_faiss_many_photos_are_one_line_before_any_is_read(monkeypatch):
    monkeypatch.setattr(module, "EXACT", 5)
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr(module, "thumbnails", None)
    photos = [Photo(Path(f"{i}.jpg"), f"{i}.jpg") for i in range(6)]
    with pytest.raises(DistillError, match=r"^6 photos: .*pip install 'distill\[scale\]'"):
        find_near_duplicates(photos, "many")


def test_real_copies_are_found_in_buckets(assets, few_are_compared):
    """Every pair of the portraits, which comparing all of them finds."""
    photos = find_photos(assets / "photos" / "people")
    made = thumbnails(photos, "people")
    assert similar_pairs(made).tolist() == sorted(module.all_pairs(made).tolist())
