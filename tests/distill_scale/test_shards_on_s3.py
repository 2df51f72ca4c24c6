"""Shards at s3:// addresses, with a store on this machine: pack, train, unpack, and what breaks."""

from pathlib import Path

import pytest

from distill.core.files import cache_folder
from distill.train import __main__ as train
from distill.train.callbacks.reports import MetricsTable
from distill_scale.shards import __main__ as shards
from support.commands import go, run
from support.last_checkpoints import differences, saved
from support.object_store import BUCKET, object_store
from support.pairs_on_disk import contents, pixels, write_set

pytest.importorskip("pyarrow", reason="needs the extra shards")
CODEC = ["codec=raw", "pairs=3", "workers=0"]
THERE = f"s3://{BUCKET}/sets/packed"
LENGTH = ["trainer.max_steps=6", "trainer.val_every=3", "trainer.threads=1"]


@pytest.fixture
def store():
    with object_store() as made:
        yield made


@pytest.fixture
def packed(tmp_path, monkeypatch, store):
    """A working folder with a set, packed to THERE; the store."""
    monkeypatch.chdir(tmp_path)
    write_set(Path("set"), {"train": {"": 10}, "val": {"": 4}})
    assert run(shards, "data.root=set", f"output={THERE}", *CODEC) == 0
    return store


def on(root, *more):
    return go("style=toon", "data=shards", f"data.root={root}", *LENGTH, *more)


def line(capsys):
    """The one line that a command ended with."""
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    return error


@pytest.mark.campaign
def test_packed_to_a_bucket_and_unpacked_it_is_the_set(packed, capsys):
    assert run(shards, "data.root=set", f"output={THERE}", *CODEC) == 0
    assert "0 new" in capsys.readouterr().out  # what lies there is known by size and plan
    assert run(shards, f"data.root={THERE}", "to=pairs", "output=back") == 0
    assert pixels(Path("back")) == pixels(Path("set"))
    beside = {name for name in contents(Path("set")) if not name.endswith(".png")}
    assert contents(Path("back")).keys() >= beside


@pytest.mark.campaign
def test_training_from_a_bucket_learns_what_local_shards_teach(packed):
    assert run(shards, "data.root=set", "output=local", *CODEC) == 0
    assert on("local", "run=local") == 0
    for name, *more in (
        ("read", "data.cache=0", "data.workers=0"),
        ("copied", "data.cache=1GB", "data.workers=0"),
        ("workers", "data.cache=1GB", "data.workers=2"),
    ):
        assert on(THERE, f"run={name}", *more) == 0
        assert not differences(saved("local")["state_dict"], saved(name)["state_dict"])
    assert list((cache_folder() / "shards").glob("*.tar"))


@pytest.mark.slow
def test_a_bucket_that_is_not_there_is_one_line_and_is_not_made(packed, capsys):
    nowhere = "s3://nowhere-at-all/set"
    capsys.readouterr()
    assert run(shards, "data.root=set", f"output={nowhere}", *CODEC) == 1
    assert f"{nowhere}: no such bucket, or it may not be seen; make it, or" in line(capsys)
    assert run(shards, f"data.root={nowhere}", "to=pairs", "output=back") == 1
    assert f"{nowhere}: no shards there" in line(capsys)
    assert run(train, "style=toon", "data=shards", f"data.root={nowhere}") == 1
    assert f"{nowhere}: no shards there" in line(capsys)


@pytest.mark.campaign
@pytest.mark.parametrize("workers", [0, 2])
def test_a_connection_that_breaks_in_mid_training_is_told(packed, capsys, monkeypatch, workers):
    plain = MetricsTable.on_train_batch_end

    def hook(self, trainer, *args):
        if trainer.global_step == 2:
            packed.stop()
        return plain(self, trainer, *args)

    monkeypatch.setattr(MetricsTable, "on_train_batch_end", hook)
    capsys.readouterr()
    options = ["run=broken", "data.cache=0", f"data.workers={workers}", "trainer.max_steps=200"]
    assert go("style=toon", "data=shards", f"data.root={THERE}", *options) == 1
    said = capsys.readouterr().err.splitlines()
    told = [each for each in said if f"{THERE}: cannot be reached" in each]
    assert told
    assert "run it again to resume" in told[-1]
