from pathlib import Path

from distill.data.photo_table import PhotoRow, png_names
from distill.data.photos import Photo


def test_a_photo_is_no_near_duplicate_unless_it_is_said(tmp_path):
    row = PhotoRow.of(Photo(Path("a.png"), "a.png"), "val")
    assert (row.side, row.near_duplicate, row.reason) == ("val", False, "")


def test_pictures_are_png_files_that_are_whole(tmp_path):
    (tmp_path / "train/photo").mkdir(parents=True)
    for name in ("a.png", "b.txt", ".c.png", ".d.part", "e.png.part"):
        (tmp_path / "train/photo" / name).touch()
    assert png_names(tmp_path, "train", "photo") == {"a.png"}
    assert png_names(tmp_path, "val", "photo") == set()
