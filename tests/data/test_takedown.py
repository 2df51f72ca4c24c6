"""What still holds a picture that was left out: sets, shards, runs and their heirs, caches."""

import shutil
from pathlib import Path

import pytest
import yaml

from distill.core.errors import DistillError
from distill.core.licence_terms import Terms
from distill.data.dropped import content_line
from distill.data.photo_table import PhotoRow, write_rows, write_sides
from distill.data.photos import Photo
from distill.data.takedown import (
    note_published,
    record_takedown,
    set_with_takedown,
    with_takedown,
)


def withdrawn(path: Path) -> int:
    """How many pictures were taken down that the network in a file learnt from."""
    chain = with_takedown(Terms(()), path).chain
    return int(chain[0].text.split()[2]) if chain else 0


ANNA, BERT = (Photo(Path(name), name) for name in ("anna.jpg", "bert.jpg"))


def a_set(folder: Path, *photos: Photo) -> Path:
    folder.mkdir(parents=True)
    write_rows(folder, [PhotoRow.of(photo, "train") for photo in photos])
    return folder


def a_run(folder: Path, **settings: object) -> None:
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))


def test_a_list_that_cannot_be_written_ends_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    root = a_set(Path("data/pairs/set"), BERT)
    a_run(Path("runs/shut"), data={"root": str(root)})
    Path("runs/shut/takedown.txt/x").mkdir(parents=True)  # of a run's a line in the set's is left
    record_takedown(root, {ANNA.pair_name: "anna.jpg"}, Path("runs"))
    assert "run    runs/shut" in (root / "takedown.txt").read_text()
    (root / "takedown.txt").unlink()
    (root / "takedown.txt/x").mkdir(parents=True)
    capsys.readouterr()
    with pytest.raises(OSError, match=r"takedown\.txt"):
        record_takedown(root, {ANNA.pair_name: "anna.jpg"}, Path("runs"))
    assert not capsys.readouterr().out


def test_every_place_is_named_and_nothing_is_deleted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISTILL_CACHE", str(tmp_path / "cache"))
    root = a_set(Path("data/pairs/toon-p-256"), BERT)  # anna is gone from it
    a_set(Path("data/pairs/hayao-p-256"), ANNA, BERT)
    a_set(Path("data/pairs/other"), BERT)
    a_set(Path("data/shards/toon-p-256/set"), ANNA)
    a_run(Path("runs/first"), data={"root": str(root)})
    a_run(Path("runs/sweep-a/second"), data={"root": "data/shards/toon-p-256", "kind": "shards"})
    Path("runs/sweep-a/second/export").mkdir()
    a_run(Path("runs/heir"), data={"root": "x"}, init="runs/first/checkpoints/best.ckpt")
    a_run(Path("runs/pupil"), data={"root": "x"}, teacher={"path": "runs/heir"})
    domains = {"a": "data/pairs/toon-p-256/A", "b": "elsewhere/B"}
    a_run(Path("runs/cycle"), data={"root": None, **domains}, recipe="cyclegan")
    a_run(Path("runs/stranger"), data={"root": "data/pairs/other"}, init="zoo:toon")
    a_run(Path("runs/damaged"))
    Path("runs/damaged/config.yaml").write_text("]")
    note_published(root, "me/set")
    note_published(root, "me/set")
    note_published(Path("runs/heir"), "me/heir")
    held = Path("cache/held-out/x/val/photo") / f"{ANNA.pair_name}.png"
    held.parent.mkdir(parents=True)
    held.write_bytes(b"")
    everything = sorted(p for p in tmp_path.rglob("*"))

    record_takedown(root, {ANNA.pair_name: "anna.jpg"}, Path("runs"))
    said = capsys.readouterr().out
    lines = {" ".join(line.split()[:2]).replace(":", "") for line in said.splitlines()[1:]}
    assert lines == {
        "set data/pairs/hayao-p-256", "set data/shards/toon-p-256", "run runs/first",
        "run runs/sweep-a/second", "run runs/heir", "run runs/pupil", "run runs/cycle",
        "public me/set", "public me/heir", f"copy {tmp_path / held}",
    }  # fmt: skip
    assert "runs/sweep-a/second: its student learnt from it, its exports too" in said
    assert "runs/pupil: its student started from or was taught by such a student" in said
    kept = (root / "takedown.txt").read_text().splitlines()
    assert kept[1:] == [f'picture {ANNA.pair_name} "anna.jpg"', *said.splitlines()[1:]]
    assert sorted(p for p in tmp_path.rglob("*") if p.name != "takedown.txt") == everything
    for run, count in {
        "first": 1,
        "sweep-a/second": 1,
        "heir": 1,
        "pupil": 1,
        "stranger": 0,
    }.items():
        assert withdrawn(Path("runs") / run / "checkpoints/best.ckpt") == count
    record_takedown(root, {ANNA.pair_name: "anna.jpg"}, Path("runs"))
    again = (root / "takedown.txt").read_text().splitlines()
    assert len(again) == len({*again})
    assert {*kept} <= {*again}
    capsys.readouterr()
    record_takedown(root, {}, Path("runs"), restored={ANNA.pair_name})
    assert not withdrawn(Path("runs/first/checkpoints/best.ckpt"))
    assert capsys.readouterr().out == ""


@pytest.fixture
def taken(tmp_path, monkeypatch):
    """A set from which anna was taken down, after two runs had learnt from it, and one had not."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISTILL_CACHE", str(tmp_path / "cache"))
    root = a_set(Path("data/pairs/first"), ANNA, BERT)
    for number, photo in enumerate((ANNA, BERT)):
        (root / "train/photo").mkdir(parents=True, exist_ok=True)
        (root / f"train/photo/{photo.pair_name}.png").write_bytes(bytes([number]) * 99)
    shutil.copytree(root, "elsewhere/copy")
    for run, photos in {"both": (ANNA, BERT), "bert": (BERT,)}.items():
        a_run(Path("runs", run), data={"root": str(root)})
        write_sides(
            Path("runs", run, "pairs.tsv"), [(f"{p.pair_name}.png", "train") for p in photos]
        )
        (Path("runs", run) / "export").mkdir()
        (Path("runs", run) / "export/student.onnx").write_bytes(run.encode())
    line = content_line(file := root / f"train/photo/{ANNA.pair_name}.png")
    file.unlink()
    write_rows(root, [PhotoRow.of(BERT, "train")])
    record_takedown(root, {ANNA.pair_name: "anna.jpg"}, Path("runs"), contents=[line])
    return root


def test_a_run_is_bound_by_what_it_learnt_from(taken):
    assert withdrawn(Path("runs/both/export/student.onnx")) == 1
    assert not withdrawn(Path("runs/bert/export/student.onnx"))
    Path("runs/both").rename("renamed")  # and its student by its content
    assert withdrawn(Path("renamed/checkpoints/last.ckpt")) == 1
    shutil.copy("renamed/export/student.onnx", "harmless.onnx")
    assert withdrawn(Path("harmless.onnx")) == 1
    shutil.copy("runs/bert/export/student.onnx", "bert.onnx")
    assert not withdrawn(Path("bert.onnx"))


def test_a_set_that_is_renamed_keeps_it(taken):
    a_run(Path("others/late"), data={"root": str(taken)})
    write_sides(Path("others/late/pairs.tsv"), [(f"{ANNA.pair_name}.png", "train")])
    taken.rename("data/pairs/renamed")
    assert withdrawn(Path("others/late/checkpoints/last.ckpt")) == 1


def test_a_copy_with_other_names_is_known_by_its_pictures(taken):
    copy = Path("elsewhere/copy")
    (copy / f"train/photo/{ANNA.pair_name}.png").rename(copy / "train/photo/x.png")
    (copy / "photos.tsv").unlink()
    found = set_with_takedown(Terms(()), copy)
    assert [e.text for e in found.chain] == ["taken down: 1 picture that it holds"]
    for name, count in {"x.png": 1, f"{BERT.pair_name}.png": 0}.items():
        run = Path("runs", name)
        a_run(run, data={"root": str(copy)})
        write_sides(run / "pairs.tsv", [(name, "train")])
        assert withdrawn(run / "checkpoints/last.ckpt") == count
    assert set_with_takedown(Terms(()), taken) == Terms(())


def test_a_set_far_away_is_listed_where_a_run_here_learnt_from_it(taken):
    (taken / "takedown.txt").unlink()
    own = Path("elsewhere/own")  # pairs of one's own, without a list of photos
    shutil.copytree("elsewhere/copy/train", own / "train")
    line = content_line(own / f"train/photo/{ANNA.pair_name}.png")
    for run, root in {"pulled": Path("elsewhere/copy"), "own": own}.items():
        a_run(Path("runs", run), data={"root": str(root)})
        write_sides(Path("runs", run, "pairs.tsv"), [(f"{ANNA.pair_name}.png", "train")])
    record_takedown(taken, {ANNA.pair_name: "anna.jpg"}, Path("runs"), contents=[line])
    listed = (taken / "takedown.txt").read_text()
    for place in ("/elsewhere/copy: 1 pair", "/elsewhere/own: 1 pair", "runs/pulled", "runs/own"):
        assert place in listed


def test_a_run_that_is_listed_is_bound_without_its_set(taken):
    """It learnt from a copy of another name, in a set by a teacher or in pairs of one's own."""
    (taken / "takedown.txt").unlink()
    copy = Path(f"elsewhere/copy/train/photo/{ANNA.pair_name}.png")
    near, own = a_set(Path("data/pairs/near"), Photo(Path("q.jpg"), "q.jpg"), BERT), Path("own")
    for root, run in {near: "near", own: "own"}.items():
        (root / "train/photo").mkdir(parents=True)
        shutil.copy(copy, root / "train/photo/q.png")
        for each, name in {run: "q.png", f"{run}-bert": f"{BERT.pair_name}.png"}.items():
            a_run(Path("runs", each), data={"root": str(root)})
            write_sides(Path("runs", each, "pairs.tsv"), [(name, "train")])
    record_takedown(taken, {ANNA.pair_name: "anna.jpg"}, contents=[content_line(copy)])
    for root, run in {near: "near", own: "own"}.items():
        shutil.rmtree(root)
        assert withdrawn(Path(f"runs/{run}/checkpoints/last.ckpt")) == 1
        assert not withdrawn(Path(f"runs/{run}-bert/checkpoints/last.ckpt"))


def test_another_photo_of_the_same_name_is_not_meant(taken):
    other = a_set(Path("data/pairs/other"), ANNA)
    (other / "train/photo").mkdir(parents=True)
    (other / f"train/photo/{ANNA.pair_name}.png").write_bytes(b"someone else")
    a_run(Path("runs/other"), data={"root": str(other)})
    write_sides(Path("runs/other/pairs.tsv"), [(f"{ANNA.pair_name}.png", "train")])
    assert not withdrawn(Path("runs/other/checkpoints/last.ckpt"))
    assert set_with_takedown(Terms(()), other) == Terms(())


def test_a_takedown_knows_of_files_that_were_pushed(taken, capsys):
    """A run's file where it lies, and a copy of one elsewhere; a file of no run leaves nothing."""
    note_published(Path("runs/both/export/student.onnx"), "me/onnx")
    shutil.copy("runs/both/export/student.onnx", "copy.onnx")
    note_published(Path("copy.onnx"), "me/copy")
    Path("strange.onnx").write_bytes(b"strange")
    note_published(Path("strange.onnx"), "me/strange")
    assert Path("runs/both/published.txt").read_text() == "me/onnx\nme/copy\n"
    assert [*Path().rglob("published.txt")] == [Path("runs/both/published.txt")]
    capsys.readouterr()
    record_takedown(taken, {ANNA.pair_name: "anna.jpg"}, Path("runs"))
    said = capsys.readouterr().out.splitlines()
    public = [line for line in said if line.startswith("public ")]
    assert public == [f"public me/{name}: pushed from runs/both" for name in ("onnx", "copy")]


def test_it_is_published_for_a_reason_alone(taken):
    path = Path("runs/both/export/student.onnx")
    terms = with_takedown(Terms(()), path)
    for reason in (None, " "):
        with pytest.raises(
            DistillError, match=r"^run=both: taken down: 1 picture .* takedown.accept='REASON'"
        ):
            terms.published("run=both", reason)
    told = terms.published("run=both", "the court said so")
    assert (told.commercial, told.chain[0].stated) == ("unknown", True)
    assert told.line.endswith("that it learnt from; accepted: the court said so)")
    assert with_takedown(told, path) == told
    assert told.published("run=both", None) == told
    assert Terms(()).published("run=x", None) == Terms(())
