"""distill.shards as typed, and what every other command makes of a run on shards."""

import json
import shutil
import sys
from pathlib import Path

import fsspec
import numpy as np
import pytest
from PIL import Image
from torch.utils.data import DataLoader

from distill.config import compose
from distill.config.settings.training import Train
from distill.data import datamodule
from distill.data.pairs import find_pairs
from distill.data.sampler import StreamSampler
from distill.eval_fid import __main__ as eval_fid
from distill.eval_fid import training_pictures
from distill.export import __main__ as export
from distill.prepare import __main__ as prepare
from distill.runs.run_folder import Run
from distill.train import __main__ as train
from distill_scale.shards import __main__ as shards
from support.commands import QUICK, SMALL, go, run
from support.last_checkpoints import differences, saved
from support.pairs_on_disk import contents, pixels, write_set

pytest.importorskip("pyarrow", reason="needs the extra shards")
CODEC = ["codec=raw", "pairs=3", "workers=0"]
LENGTH = ["trainer.max_steps=6", "trainer.val_every=3", "trainer.threads=1"]
ON = ["style=toon", "data=shards", "data.root=packed"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return tmp_path_factory.mktemp("made")


@pytest.fixture
def packed(here, made):
    """The photos of `here`, labelled by the toon teacher into `set` and packed into `packed`."""
    names = ("photos", "set", "packed")
    if not any(made.iterdir()):
        assert run(prepare, "photos=photos", "data.root=set", *SMALL) == 0
        assert run(shards, "data.root=set", "output=packed", *CODEC) == 0
        for name in names:
            shutil.copytree(name, made / name)
    for name in names:
        shutil.copytree(made / name, name, dirs_exist_ok=True)
    return here


@pytest.mark.campaign
def test_it_says_what_it_made_and_what_to_type_next(packed, capsys):
    words = ["data.root=set", "output=packed", *CODEC]
    assert run(shards, *words) == 0
    said = capsys.readouterr().out
    assert "0 new" in said
    assert said.endswith("next: python -m distill.train style=toon data=shards data.root=packed\n")
    assert run(shards, "data.root=packed", "to=pairs", "output=back") == 0
    said = capsys.readouterr().out
    assert said.endswith("next: python -m distill.train style=toon data.root=back\n")
    assert pixels(Path("back")) == pixels(Path("set"))
    beside = {name for name in contents(Path("set")) if not name.endswith(".png")}
    assert {n: contents(Path("back"))[n] for n in beside} == {
        n: contents(Path("set"))[n] for n in beside
    }
    # The set is whole again: preparing it makes nothing.
    assert run(prepare, "photos=photos", "data.root=back", *SMALL) == 0
    assert ", 0 new" in capsys.readouterr().out


WRONG = {
    "shards": "data.root=null: name the set of pairs",
    "shards to=pairs": "data.root=null: name the shards",
    "shards data.root=nowhere": "data.root=nowhere: no such folder",
    "shards data.root=packed output=again": "only a local folder of pairs is packed",
    "shards data.root=s3://a/b": "only a local folder|s3fs",
    "shards data.root=set output=set": "that is the set itself",
    "shards data.root=set to=pairs output=x": "set: no shards there",
    "shards data.root=packed to=pairs output=s3://a/b": "unpacked into a local folder",
    "train data=shards data.root=set": "set: no shards there; python -m distill.shards",
    "train data.root=packed": "holds shards; add data=shards",
    "prepare data=shards data.root=packed photos=photos": "made with shard.codec=raw shard.pairs=3",
    "train data=shards data.root=nosuch://a": "nosuch://a: cannot be reached",
}


@pytest.mark.slow
def test_what_is_wrong_is_one_line(packed, capsys):
    capsys.readouterr()
    commands = {"shards": shards, "train": train, "prepare": prepare}
    for typed, wanted in WRONG.items():
        name, *words = typed.split()
        assert run(commands[name], *words) == 1, typed
        error = capsys.readouterr().err
        assert error.count("\n") == 1, error
        assert any(each in error for each in wanted.split("|")), (typed, error)


@pytest.mark.parametrize("package", ["pyarrow", "qoi"])
@pytest.mark.slow
def test_a_missing_library_is_one_line(packed, capsys, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    if package == "pyarrow":
        monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    capsys.readouterr()
    assert run(shards, "data.root=set", "output=other", "workers=0", "codec=qoi") == 1
    said = capsys.readouterr().err
    assert "pip install 'distill[shards]'" in said
    assert said.count("\n") == 1
    assert not Path("other").exists()


# Training on them


def data_of(*words, size=64):
    typed = ["photos=photos", f"style.resolution={size}", "data.workers=0", *words]
    return datamodule.data_module(compose.load("train", typed, Train))


@pytest.mark.campaign
def test_a_teacher_s_pairs_are_not_mirrored_and_one_s_own_are(packed):
    assert not data_of(*ON).train.flip
    assert data_of(*ON, "data.flip=true").train.flip
    write_set(packed / "own", {"train": {"": 6}, "val": {"": 2}}, teacher=False)
    assert run(shards, "data.root=own", "output=own-packed", *CODEC) == 0
    assert data_of("data=shards", "data.root=own-packed", "style=own").train.flip


def batches(workers, rank=0, world=1, batch=2, count=6):
    sampler = StreamSampler(count * batch, 0, rank, world, batch)
    loader = DataLoader(data_of(*ON).train, batch, sampler=sampler, num_workers=workers)
    return [(tuple(each["name"]), each["photo"].double().sum().item()) for each in loader]


@pytest.mark.campaign
def test_any_number_of_workers_and_processes_sees_the_same_pictures_in_the_same_order(packed):
    alone = batches(0)
    assert batches(1) == batches(3) == alone
    two = [batches(1, rank, 2) for rank in (0, 1)]
    assert [each for both in zip(*two, strict=True) for each in both] == alone


def shard_run(name, *more):
    return go(f"run={name}", *ON, *LENGTH, *more)


@pytest.mark.slow
def test_an_address_of_fsspec_trains_to_the_same_weights_with_and_without_copies(packed):
    there = "memory://store/packed"
    assert run(shards, "data.root=set", f"output={there}", *CODEC) == 0
    try:
        assert shard_run("local") == 0
        for name, cache in (("copied", "1GB"), ("read", "0")):
            words = ["style=toon", "data=shards", f"data.root={there}", f"data.cache={cache}"]
            assert go(f"run={name}", *words, *LENGTH) == 0
            assert not differences(saved("local")["state_dict"], saved(name)["state_dict"])
    finally:
        fsspec.filesystem("memory").store.clear()
    assert type(Run(Path("runs/copied")).settings().data.cache) is int


@pytest.mark.slow
def test_a_run_on_shards_is_exported_and_scored_like_any_other(packed, capsys):
    assert shard_run("scored") == 0
    for folder in ("set", "photos"):
        Path(folder).rename(f"away-{folder}")
    assert run(export, "run=scored", "exporter.size=64") == 0
    words = ["run=scored", "features=none", "bootstrap=0", "flicker=0"]
    assert run(eval_fid, *words) == 0
    results = json.loads(Path("runs/scored/eval/results.json").read_text())
    wanted = find_pairs(Path("away-set"), None, 0.1, 0)
    assert results["pictures"] == len(wanted["test"] or wanted["val"])
    assert "PSNR (dB), student to teacher" in results["similarity"]
    assert "unpacks its held-out pairs" in capsys.readouterr().out
    assert run(export, "run=scored", "exporter.size=64", "formats=[onnx,onnx_int8]") == 1
    assert "no picture of the run (training) is here; name photos with calibration=DIR" in (
        capsys.readouterr().err
    )
    Path("packed").rename("away-packed")
    assert run(eval_fid, *words) == 1
    assert "packed: no shards there" in capsys.readouterr().err


@pytest.mark.slow
def test_shards_of_one_s_own_pairs_have_no_teacher(here, capsys):
    rng = np.random.default_rng(0)
    for i in range(12):
        for side in ("A", "B"):
            path = Path("drawings") / side / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(0, 256, (72, 72, 3), np.uint8)).save(path)
    assert run(shards, "data.root=drawings", *CODEC) == 0
    assert capsys.readouterr().out.endswith(
        "next: python -m distill.train data=shards data.root=data/shards/drawings\n"
    )
    words = ["data=shards", "data.root=data/shards/drawings", *QUICK, "decoder=residual"]
    assert run(train, *words, "trainer.max_steps=1") == 0
    assert Run(Path("runs/drawings-residual")).settings().teacher is None
    assert run(eval_fid, "features=none", "bootstrap=0", "flicker=0") == 0


@pytest.mark.slow
def test_what_a_run_on_shards_has_seen_is_told_as_far_as_it_is_known(packed):
    assert go("run=seen", *ON, "trainer.max_steps=1") == 0
    trained = Run(Path("runs/seen")).settings()
    seen = training_pictures.seen_by([trained])
    (pictures,) = seen.sets
    rows = [line.split("\t") for line in Path("set/photos.tsv").read_text().splitlines()[1:]]
    sides = {f"{row[0]}.png" for row in rows if row[1] in ("train", "val")}
    assert pictures.pictures.keys() == sides  # the photos themselves are still here
    assert seen.unknown == ""
    Path("packed").rename("away")
    assert "packed: no shards there" in training_pictures.seen_by([trained]).unknown
