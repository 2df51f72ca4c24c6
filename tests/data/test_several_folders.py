from dataclasses import replace

import pytest

from distill.core.errors import DistillError
from distill.data.photo_table import folders_of, read_rows
from distill.data.photos import find_all, find_photos, folder_names
from support.labelling import MANIFEST, add, add_copies, make, sides


@pytest.fixture
def folders(tmp_path):
    """Two folders whose photos have the same names, and a third one."""
    add(tmp_path / "a", *range(8))
    add(tmp_path / "b", *range(8), change=lambda image: image.rotate(180))
    add(tmp_path / "c", *range(50, 56))
    return [tmp_path / name for name in "abc"]


def test_one_folder_is_what_it_always_was(folders):
    assert find_all(folders[:1], []) == find_photos(folders[0])


def test_photos_of_several_folders_are_told_apart_by_the_folder(folders):
    found = find_all(folders[:2], [])
    assert [photo.key for photo in found] == [f"{f}/{i}.png" for f in "ab" for i in range(8)]
    assert {photo.folder for photo in found} == {"a", "b"}
    assert {photo.side for photo in found} == {None}
    assert len({photo.pair_name for photo in found}) == 16
    assert all(photo.path.parent.name == photo.folder for photo in found)


def test_a_validation_folder_fixes_the_sides(folders):
    found = find_all(folders[:2], folders[2:])
    assert {(photo.folder, photo.side) for photo in found} == {
        ("a", "train"), ("b", "train"), ("c", "val"),
    }  # fmt: skip


def test_folders_of_one_name_get_a_number(tmp_path):
    paths = [tmp_path / one / "faces" for one in ("x", "y", "z")]
    assert folder_names(paths) == ["faces", "faces-2", "faces-3"]
    assert len(set(folder_names([tmp_path / "q/faces-2", *paths]))) == 4


@pytest.mark.parametrize(("train", "val"), [("aa", ""), ("ab", "a"), ("a", "a")])
def test_a_folder_named_twice_is_refused(folders, train, val):
    at = dict(zip("abc", folders, strict=True))
    with pytest.raises(DistillError, match="named twice"):
        find_all([at[name] for name in train], [at[name] for name in val])


def test_a_joint_set_knows_the_folder_of_every_pair(folders, tmp_path):
    root = tmp_path / "set"
    make(None, root, photos=find_all(folders, []))
    names = [path.name for path in root.glob("*/photo/*.png")]
    assert len(names) == 22
    seen = dict(zip(names, folders_of(root, names), strict=True))
    by_key = {row.pair: row.key[1] for row in read_rows(root).values()}  # 'a/0.png', quoted
    assert {name: by_key[name.removesuffix(".png")] for name in names} == seen
    assert sorted(seen.values()) == ["a"] * 8 + ["b"] * 8 + ["c"] * 6


def test_views_have_the_folder_of_their_photo(folders, tmp_path):
    manifest = replace(MANIFEST, views=3)
    make(None, tmp_path / "set", manifest, photos=find_all(folders[:2], []))
    names = [path.name for path in (tmp_path / "set").glob("train/photo/*-v002.png")]
    assert names
    assert set(folders_of(tmp_path / "set", names)) == {"a", "b"}


def test_a_separate_folder_is_the_whole_validation_side(folders, tmp_path):
    add_copies(folders[0], 51, 52)  # in both: validation wins
    report = make(None, tmp_path / "set", photos=find_all(folders[:2], folders[2:]))
    assert [report.counts[key] for key in ("train", "val", "bridging")] == [16, 6, 2]
    assert report.skipped.keys() == {"a/copy of 51.png", "a/copy of 52.png"}
    assert "belongs with 'c/51.png' in validation" in report.skipped["a/copy of 51.png"]
    assert sides(tmp_path / "set")["50"] == "val"


def test_dropped_names_count_in_every_folder_and_paths_below_each(folders, tmp_path):
    (tmp_path / "drop").write_text("3.png\na/4.png\n")
    add(folders[0] / "deep", 70)
    add(folders[1] / "deep", 71, name="70")
    report = make(None, tmp_path / "s", photos=find_all(folders[:2], []), drop=tmp_path / "drop")
    assert report.counts["dropped"] == 3
    (tmp_path / "drop").write_text("deep/70.png\n")
    report = make(None, tmp_path / "s", photos=find_all(folders[:2], []), drop=tmp_path / "drop")
    assert report.counts["dropped"] == 5  # lists add up
