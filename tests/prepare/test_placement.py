import json
import shutil
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from distill.core.errors import DistillError
from distill.core.files import sha256
from distill.data import duplicates
from distill.data.photo_table import read_rows
from distill.data.photos import find_photos
from distill.prepare import placement
from distill.prepare.set_builder import split_for
from support.labelling import MANIFEST, add, add_copies, hashes, make, sides, stamps
from support.teachers import Inverted


@pytest.fixture
def folder(tmp_path):
    add(tmp_path / "photos", *range(16))
    return tmp_path / "photos"


@pytest.fixture
def root(tmp_path):
    return tmp_path / "set"


def listed(tmp_path, *lines):
    path = tmp_path / "drop.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def one_of(root, side):
    return next(name for name, own in sorted(sides(root).items()) if own == side)


# Near-duplicates


def test_near_duplicates_stay_on_one_side_and_are_counted(folder, root):
    add_copies(folder, 0, 1, 2, 3, 4)
    report = make(folder, root)
    found = sides(root)
    assert all(found[f"copy_of_{i}"] == found[str(i)] for i in range(5))
    assert report.counts["near_duplicates"] == 10
    assert json.loads((root / "dataset.json").read_text())["counts"]["near_duplicates"] == 10
    assert "; near-duplicates, kept on one side: 10" in str(report)


def test_nothing_moves_when_a_set_grows_beyond_what_is_compared_whole(folder, root, monkeypatch):
    pytest.importorskip("faiss", reason="needs the extra scale")
    make(folder, root)
    before = sides(root)
    monkeypatch.setattr(duplicates, "EXACT", 18)
    add_copies(folder, *range(8))
    make(folder, root)
    copies = {f"copy_of_{i}": before[str(i)] for i in range(8)}
    assert sides(root) == before | copies


def test_one_that_bridges_both_sides_is_left_out_while_they_are_there(
    folder, root, tmp_path, monkeypatch
):
    make(folder, root)
    a, b = one_of(root, "train"), one_of(root, "val")
    add(folder, 99, name="bridge")
    before = sides(root)

    def both(photos, *_):
        at = {photo.key: i for i, photo in enumerate(photos)}
        ends = [at[f"{name}.png"] for name in (a, b) if f"{name}.png" in at]
        return np.array([[at["bridge.png"], end] for end in ends], np.int32)

    monkeypatch.setattr(placement, "find_near_duplicates", both)
    report = make(folder, root)
    assert sides(root) == before
    assert (report.made, report.counts["bridging"]) == (0, 1)
    reason = f"belongs with '{a}.png' in training and with '{b}.png' in validation"
    assert reason in (root / "skipped.tsv").read_text()
    again = stamps(root)
    assert make(folder, root).counts == report.counts
    assert stamps(root) == again
    report = make(folder, root, drop=listed(tmp_path, f"{b}.png"))
    assert (report.made, report.counts["bridging"]) == (1, 0)
    assert sides(root)["bridge"] == "train"


def test_a_pair_whose_photo_is_gone_keeps_near_duplicates_beside_it(folder, root):
    make(folder, root)
    for side in ("train", "val"):
        old = one_of(root, side)
        (folder / f"{old}.png").unlink()
        add_copies(folder, int(old), name=f"0 from {side}")
    make(folder, root)
    assert sides(root)["0_from_train"] == "train"
    assert sides(root)["0_from_val"] == "val"


def test_a_set_from_before_photos_tsv_stays_as_it_is(folder, root):
    make(folder, root)
    (root / "photos.tsv").unlink()
    before, teacher = stamps(root), Inverted()
    assert make(folder, root, teacher=teacher).made == 0
    assert (teacher.seen, stamps(root)) == (0, before)
    placed = sides(root)
    add_copies(folder, *range(8))
    make(folder, root)
    assert placed.items() <= sides(root).items()
    assert all(sides(root)[f"copy_of_{i}"] == placed[str(i)] for i in range(8))


def test_thumbnails_are_only_looked_at_when_a_photo_is_new(folder, root, monkeypatch):
    make(folder, root)
    monkeypatch.setattr(placement, "find_near_duplicates", lambda *args: pytest.fail("looked"))
    next(root.glob("train/stylized/*.png")).unlink()
    assert make(folder, root).made == 1


# drop=FILE


def test_dropped_photos_are_named_by_path_by_file_and_by_pair(folder, root, tmp_path):
    add(folder / "deep" / "er", 20)
    add(folder / "deep", 21)
    add(folder / "client" / "a", 22)
    add(folder / "clients", 23)  # another folder
    photos = {photo.key: photo.pair_name for photo in find_photos(folder)}
    lines = ["deep/er/20.png", "21.png", f"{photos['3.png']}.png", "client/"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # every line names a photo
        report = make(folder, root, drop=listed(tmp_path, *lines))
    assert set(sides(root)) == {*map(str, range(16)), "23"} - {"3"}
    assert report.counts["dropped"] == 4
    assert json.loads((root / "dataset.json").read_text())["counts"]["dropped"] == 4


def test_dropping_removes_the_pairs_and_the_set_remembers(folder, root, tmp_path):
    manifest = replace(MANIFEST, views=3)
    make(folder, root, manifest)
    gone = [one_of(root, "train"), one_of(root, "val")]
    view = next(root.glob(f"train/stylized/{gone[0]}-*-v002.png")).name
    report = make(folder, root, manifest, drop=listed(tmp_path, view, f"{gone[1]}.png"))
    assert report.counts["dropped"] == 2
    assert not set(gone) & set(sides(root))
    assert len(list(root.glob("*/photo/*.png"))) == len(list(root.glob("*/stylized/*.png")))
    before = stamps(root)
    again = make(folder, root, manifest)  # drop=null: the set's own list
    assert (again.made, again.counts) == (0, report.counts)
    assert stamps(root) == before


def test_lists_add_up_and_restore_alone_takes_all_back_to_where_it_was(folder, root, tmp_path):
    make(folder, root)
    before = hashes(root)
    make(folder, root, drop=listed(tmp_path, "3.png"))
    make(folder, root, drop=listed(tmp_path, "4.png"))
    assert not {"3", "4"} & {*sides(root)}
    assert make(folder, root, drop=listed(tmp_path)).made == 0
    assert make(folder, root, restore=listed(tmp_path, "3.png", "4.png")).made == 2
    after = hashes(root)
    assert (root / "dropped.txt").read_text() == ""
    del after["dropped.txt"]
    assert after == before
    (tmp_path / "both").mkdir()
    back = listed(tmp_path / "both", "3.png", "5.png")
    make(folder, root, drop=listed(tmp_path, "3.png"), restore=back)  # a takedown comes first
    assert "3" not in sides(root)
    everything = listed(tmp_path, *(path.name for path in folder.iterdir()))
    with pytest.raises(DistillError, match=r"no train photo is left: .* dropped; restore=FILE"):
        make(folder, root, drop=everything)


class Killed(Exception):
    pass


def test_what_is_left_out_is_recorded_before_anything_that_may_end_the_command(
    folder, root, tmp_path
):
    recorded = []

    def record(store, drops, contents):
        assert (store.root.local / "train/photo").is_dir()
        recorded.append(([*drops.new.values()], len(contents), drops.restored))

    def kill(store, drops, contents):
        record(store, drops, contents)
        raise Killed

    make(folder, root, record=_none)
    for _ in range(2):  # killed at that place it is found again
        with pytest.raises(Killed):
            make(folder, root, drop=listed(tmp_path, "3.png"), record=kill)
    everything = listed(tmp_path, *(path.name for path in folder.iterdir()))
    with pytest.raises(DistillError, match="no train photo is left"):
        make(folder, root, drop=everything, record=record)
    names = sorted(path.name for path in folder.iterdir())
    assert recorded == [(["3.png"], 1, set())] * 2 + [(names, len(names), set())]
    make(folder, root, restore=everything, record=record)
    new, _, restored = recorded[-1]
    assert (new, len(restored)) == ([], len(names))


def test_a_training_on_the_fly_records_what_it_leaves_out(folder, root, tmp_path):
    recorded = []

    def record(store, drops, contents):
        recorded.append([*drops.new.values()])

    split_for(find_photos(folder), MANIFEST, root, record=_none)
    split_for(find_photos(folder), MANIFEST, root, listed(tmp_path, "3.png"), record=record)
    assert recorded == [["3.png"]]


def _none(*_):
    raise AssertionError("nothing is left out here")


def test_a_renamed_copy_stays_out_until_it_is_restored(folder, root, tmp_path):
    make(folder, root)
    drop = listed(tmp_path, "3.png")
    make(folder, root, drop=drop)
    content = sha256(folder / "3.png")
    assert f"sha256:{content} " in (root / "dropped.txt").read_text()
    (folder / "3.png").rename(folder / "another name.png")
    shutil.copy(folder / "4.png", folder / "4 again.png")  # a copy of what nobody dropped
    report = make(folder, root)
    assert report.counts["dropped"] == 1
    assert not {"3", "another_name"} & {*sides(root)}
    assert "4_again" in sides(root)
    before = stamps(root)
    make(folder, root, record=_none)
    make(folder, root, drop=drop, record=_none)
    assert stamps(root) == before
    assert make(folder, root, restore=listed(tmp_path, "another name.png")).made == 1
    assert "another_name" in sides(root)
    assert "sha256" not in (root / "dropped.txt").read_text()


def test_a_photo_that_is_gone_from_the_folder_is_dropped_by_its_name(folder, root, tmp_path):
    make(folder, root)
    (folder / "3.png").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(folder, root, drop=listed(tmp_path, "3.png"))
    assert "3" not in sides(root)


def test_restoring_one_of_a_name_keeps_the_others_out(folder, root, tmp_path):
    add(folder / "deep", 20)
    (folder / "deep/20.png").rename(folder / "deep/3.png")
    make(folder, root)
    assert make(folder, root, drop=listed(tmp_path, "3.png")).counts["dropped"] == 2
    make(folder, root, restore=listed(tmp_path, "deep/3.png"))
    kept = [line for line in (root / "dropped.txt").read_text().splitlines() if ":" not in line]
    assert kept == ["3.png"]
    keys = {row.key for row in read_rows(root).values()}
    assert "'deep/3.png'" in keys
    assert "'3.png'" not in keys


def test_lines_that_name_nothing_are_said_in_one_line(folder, root, tmp_path):
    with pytest.warns(UserWarning, match="2 lines name no photo, the first: 'nobody.png'") as said:
        make(folder, root, drop=listed(tmp_path, "nobody.png", "", "3.png", "5.jpg"))
    assert len(said) == 1
    assert "3" not in sides(root)
    with pytest.warns(UserWarning, match="^drop: a line names no photo, 'nobody.png'$"):
        make(folder, root, drop=listed(tmp_path, "nobody.png"))


# One split for both ways of labelling


def test_on_the_fly_and_the_set_split_alike(folder, root, tmp_path):
    add_copies(folder, 0, 1, 2, 3)
    drop = listed(tmp_path, "5.png")
    flying = split_for(find_photos(folder), MANIFEST, root, drop)
    assert not list(root.rglob("*.png"))
    make(folder, root)  # remembers what was dropped too
    made = sides(root)
    assert {
        photo.path.stem.replace(" ", "_"): side for side in flying for photo in flying[side]
    } == made


def test_what_was_trained_on_the_fly_is_never_held_out_later(folder, root):
    flying = split_for(find_photos(folder), MANIFEST, root)
    before = stamps(root)
    assert split_for(find_photos(folder), MANIFEST, root) == flying
    assert stamps(root) == before  # a second process of the same training writes nothing
    add_copies(folder, *range(16), name="0 first of all {}")
    make(folder, root, sides=("val",))
    trained = {photo.path.stem for photo in flying["train"]}
    assert sides(root)
    assert not trained & {name.removeprefix("0_first_of_all_") for name in sides(root)}


def test_on_the_fly_refuses_a_set_that_was_split_otherwise(folder, root):
    make(folder, root)
    other = replace(MANIFEST, val_fraction=0.2)
    with pytest.raises(DistillError, match=r"val_fraction 0\.4 there, 0\.2 now"):
        split_for(find_photos(folder), other, root)


# Nothing to do


def test_a_complete_set_is_not_written_to(folder, root, monkeypatch):
    (folder / "bad.png").write_text("<html>")
    add_copies(folder, 0)
    report = make(folder, root)
    before = stamps(root)
    monkeypatch.setattr("distill.prepare.pair_maker.writing", lambda root: pytest.fail("locked"))
    again = make(folder, root)
    assert stamps(root) == before
    assert (again.made, again.counts) == (0, report.counts)
    assert again.skipped == report.skipped


def test_a_complete_set_without_a_side_is_refused_every_time(tmp_path, root):
    folder = tmp_path / "bad"
    folder.mkdir()
    for i in range(12):
        Path(folder / f"{i}.jpg").write_text("<html>")
    for _ in range(2):
        with pytest.raises(DistillError, match="no train photo could be read"):
            make(folder, root)


def test_a_row_that_is_gone_is_written_again(folder, root):
    """The pairs say on which side the photo is."""
    make(folder, root)
    before = (root / "photos.tsv").read_text()
    lines = before.splitlines(keepends=True)
    (root / "photos.tsv").write_text("".join(lines[:3] + lines[4:]))
    assert make(folder, root).made == 0
    assert (root / "photos.tsv").read_text() == before
