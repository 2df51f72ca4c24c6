"""photos=s3://BUCKET/FOLDER, with a store on this machine: label, train, and what goes wrong."""

import sys
from pathlib import Path

import pytest

from distill.data import listing
from distill.eval_fid import __main__ as eval_fid
from distill.export import __main__ as export
from distill.prepare import __main__ as prepare
from distill.prepare.teacher_pass import TeacherPass
from distill.stylize import __main__ as stylize
from distill.train import __main__ as train
from support.commands import QUICK, SMALL, run
from support.object_store import BUCKET, object_store
from support.pairs_on_disk import contents
from support.stored_photos import upload

pytest.importorskip("pyarrow", reason="needs the extra shards")
THERE = f"s3://{BUCKET}/from/photos"
SHARDS = ["data=shards", "shard.pairs=3", *SMALL]


@pytest.fixture
def store(here):
    """A store that holds the photos of the fixture `here`, in a working folder without them."""
    with object_store() as made:
        upload(here / "photos", THERE)
        (here / "photos").rename(here / "local")
        yield made


def line(capsys):
    """The one line that a command ended with."""
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    return error


def but_for_where(root):
    """The files of a set but those that say where its photos are from."""
    return {name: text for name, text in contents(Path(root)).items() if "dataset.json" not in name}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.campaign
def test_photos_in_a_bucket_make_the_shards_of_photos_in_a_folder(store, workers, capsys):
    assert run(prepare, "photos=local", "data.root=here", *SHARDS) == 0
    words = [*SHARDS, f"label.workers={workers}"]
    assert run(prepare, f"photos={THERE}", "data.root=there", *words) == 0
    assert but_for_where("there") == but_for_where("here")
    capsys.readouterr()
    assert run(prepare, f"photos={THERE}", "data.root=there", *words) == 0
    said = capsys.readouterr().out
    assert ", 0 new" in said
    assert said.count(f"{THERE}: listing what is there") == 1


@pytest.mark.campaign
def test_training_labels_them_into_a_folder_and_eval_and_export_know_the_set(store, capsys):
    words = ["decoder=residual", *QUICK, "trainer.max_steps=2", "trainer.val_every=2"]
    assert run(train, f"photos={THERE}", *words, "run=away") == 0
    pairs = contents(Path("data/pairs/toon-photos-64-crop90"))
    assert sum("/photo/" in name for name in pairs) == 16
    assert run(eval_fid, "run=away", "features=none", "bootstrap=0", "flicker=0") == 0
    assert run(export, "run=away", "parity=null") == 0
    for command, *typed in (
        (eval_fid, "run=away", f"photos={THERE}"),
        (eval_fid, f"a={THERE}", "b=local"),
        (export, "run=away", f"photos={THERE}"),
        (export, "run=away", f"calibration={THERE}"),
        (stylize, "run=away", f"{THERE}/Person_0_0001.png"),
    ):
        capsys.readouterr()
        assert run(command, *typed) == 1
        assert f"{THERE}" in (said := line(capsys))
        assert "pictures at an address are only read to be labelled, by distill.prepare" in said
    store.stop()  # the finished set is enough
    assert run(eval_fid, "run=away", "features=none", "bootstrap=0", "flicker=0") == 0


def test_a_missing_package_is_one_line(here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    assert run(prepare, "photos=gs://bucket/photos", *SHARDS) == 1
    assert "gs://bucket/photos: Please install gcsfs" in line(capsys)
    assert run(stylize, "gs://bucket/photos/1.png") == 1
    assert "pictures at an address are only read to be labelled" in line(capsys)


@pytest.mark.slow
def test_sketches_are_of_local_photos(store, capsys):
    assert run(prepare, "recipe=pix2pix", f"photos={THERE}") == 1
    assert f"photos={THERE}: sketches are made from photos on this machine" in line(capsys)


@pytest.mark.campaign
@pytest.mark.parametrize("workers", [0, 2])
def test_a_store_that_goes_away_in_mid_labelling_is_one_line_and_goes_on(
    store, capsys, monkeypatch, workers
):
    monkeypatch.setattr(listing, "PAUSES", ())
    begin = TeacherPass.begin
    monkeypatch.setattr(TeacherPass, "begin", lambda *args: (begin(*args), store.stop()))
    words = [f"photos={THERE}", "data.root=set", *SHARDS, f"label.workers={workers}"]
    assert run(prepare, *words) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"error: {THERE}/Person_")
    assert "cannot be read" in said
    assert not list(Path("set").glob("shards/*"))
    assert not Path("set/set/skipped.tsv").exists()
