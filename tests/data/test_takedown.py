"""What still holds a picture that was left out: sets, shards, runs and their heirs, caches."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from distill.data.photo_table import PhotoRow, write_rows
from distill.data.photos import Photo
from distill.data.takedown import note_published, report_takedown

ANNA, BERT = (Photo(Path(name), name) for name in ("anna.jpg", "bert.jpg"))


def a_set(folder: Path, *photos: Photo) -> Path:
    folder.mkdir(parents=True)
    write_rows(folder, [PhotoRow.of(photo, "train") for photo in photos])
    return folder


def a_run(folder: Path, **settings: object) -> None:
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))


def test_every_place_is_named_and_nothing_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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

    report_takedown(root, {ANNA.pair_name: "anna.jpg"}, Path("runs"))
    said = capsys.readouterr().out
    lines = {" ".join(line.split()[:2]).replace(":", "") for line in said.splitlines()[1:]}
    assert lines == {
        "set data/pairs/hayao-p-256", "set data/shards/toon-p-256", "run runs/first",
        "run runs/sweep-a/second", "run runs/heir", "run runs/pupil", "public me/set",
        "public me/heir", f"copy {tmp_path / held}",
    }  # fmt: skip
    assert "runs/sweep-a/second: its student learnt from it, its exports too" in said
    assert "runs/pupil: its student started from or was taught by such a student" in said
    assert {*(root / "takedown.txt").read_text().splitlines()[1:]} == {*said.splitlines()[1:]}
    assert sorted(p for p in tmp_path.rglob("*") if p.name != "takedown.txt") == everything
    report_takedown(root, {}, Path("runs"))
    assert capsys.readouterr().out == ""
