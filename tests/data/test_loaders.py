"""The pictures of recipe=pix2pix and recipe=cyclegan, from settings as a user types them."""

import numpy as np
import pytest
import torch
from PIL import Image

from distill.config import compose
from distill.config.settings.training import Train
from distill.core.errors import DistillError
from distill.data import datamodule
from distill.data.manifest import Manifest, write_manifest
from distill.data.pairs import find_pairs
from distill.data.worker_loader import ErrorForwardingLoader
from distill_gan import loaders as gan_loaders
from distill_gan.settings import CycleGANTrain, Pix2PixTrain
from distill_sets.sketches.sketch_set import SketchManifest
from support.coordinate_pictures import coordinates
from support.refusals import refusal

SMALL = ["data.size=72", "data.crop_size=64", "data.workers=0"]
SIZE = (72, 72)
BLUE = {"A": 10, "B": 20}  # tells the sides apart


def two_folders(root, alpha=None, a="A", b="B", count=12):
    for i in range(count):
        coordinates(root / a / f"{i}x.png", BLUE["A"], SIZE)
        coordinates(root / b / f"{i}x.png", BLUE["B"], SIZE, alpha)
    return root


def paired(root, *more):
    words = ["recipe=pix2pix", f"data.root={root}", *SMALL, *more]
    return gan_loaders.paired(compose.load("train", words, Pix2PixTrain))


def unpaired(*more):
    words = ["recipe=cyclegan", *SMALL, *more]
    return gan_loaders.unpaired(compose.load("train", words, CycleGANTrain))


def blue(sample):
    return {k: int(v[0, 0, 2]) for k, v in sample.items() if torch.is_tensor(v)}


def side(sample):
    return {tuple(v.shape) for v in sample.values() if torch.is_tensor(v)}


# Pairs


def test_a_batch_far_larger_than_the_set_is_refused(tmp_path):
    root = two_folders(tmp_path)
    paired(root, "data.batch_size=64").check_batch()
    data = paired(
        root, "data.batch_size=65"
    )  # an export of an earlier run still reads its pictures
    said = r"^data\.batch_size=65: more than there is to learn from, \d+ pictures; set at most 64$"
    with pytest.raises(DistillError, match=said):
        data.first_batches(1)


@pytest.mark.campaign
def test_the_settings_of_pairs_reach_them(tmp_path):
    root = two_folders(tmp_path)
    still = paired(root, "data.flip=false", "data.size=64")
    whole = [still.train[p]["photo"] for p in range(8)]
    assert len({each.numpy().tobytes() for each in whole}) == 1  # no crop, no mirror image
    varied = paired(root, "data.flip=false", "data.size=64", "data.colour=0.3")
    assert len({varied.train[p]["photo"].numpy().tobytes() for p in range(8)}) == 8
    other = paired(root, "seed=1")
    assert any(
        not torch.equal(other.train[p]["photo"], paired(root).train[p]["photo"]) for p in range(3)
    )
    assert (still.batch_size, still.workers, still.val_limit) == (1, 0, 64)
    assert paired(root, "data.val_limit=null", "data.batch_size=3").val_limit is None


MADE = {  # a set of the layout that distill.prepare writes, and what its manifest says
    "one's own": None,
    "a teacher's": Manifest("DIR", "toon", "print", size=64),
    "sketches": SketchManifest("DIR", "", "", size=64),
}


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("asked", ["null", "true", "false"])
@pytest.mark.parametrize("recipe", ["distill", "pix2pix"])
@pytest.mark.campaign
def test_a_teacher_s_pairs_are_mirrored_only_where_that_is_asked_for(tmp_path, made, asked, recipe):
    root = two_folders(tmp_path, a="photo", b="stylized", count=30)
    if MADE[made]:
        write_manifest(root, MADE[made], {"train": 30})
    flip = f"data.flip={asked}"
    if recipe == "pix2pix":
        data = paired(root, flip, "data.size=64")
    else:
        words = [f"data.root={root}", "style.resolution=64", "data.workers=0", flip]
        data = datamodule.data_module(compose.load("train", words, Train))
    reds = [data.train[position]["photo"][0, :, 0] for position in range(12)]
    wanted = {"true": {True, False}, "false": {False}}
    wanted["null"] = wanted["false" if made == "a teacher's" else "true"]
    assert {bool(red[0] > red[-1]) for red in reds} == wanted[asked]
    assert data.val[0]["photo"][0, 0, 0] < data.val[0]["photo"][0, -1, 0]


@pytest.mark.campaign
def test_what_the_defaults_ask_of_mirroring():
    def flip(schema, *words):
        return compose.load("train", [*words], schema).data.flip

    assert flip(Train) is None
    assert flip(Train, "data=demo") is True  # toon's drawings mirror along, see test_toon.py
    assert flip(Pix2PixTrain, "recipe=pix2pix") is None
    assert flip(CycleGANTrain, "recipe=cyclegan") is True
    with pytest.raises(DistillError, match=r"data\.flip"):  # no target to contradict
        flip(CycleGANTrain, "recipe=cyclegan", "data.flip=null")


def test_padding_reaches_both_sides(tmp_path):
    for name, level in BLUE.items():
        for i in range(12):
            coordinates(tmp_path / name / f"{i}x.png", level, (144, 72))
    pairs = paired(tmp_path, "data.pad=black").val[0]
    domains = unpaired(f"data.root={tmp_path}", "data.pad=black").val[0]
    for shown in (pairs["photo"], pairs["target"], domains["a"], domains["b"]):
        assert int(shown[:16].max()) == int(shown[48:].max()) == 0
        assert int(shown[16:48, :, 2].min()) >= 10


def test_one_see_through_target_of_many_is_enough_and_bad_ones_are_passed_over(tmp_path):
    root = two_folders(tmp_path)
    for i in range(5):
        (root / "B" / f"{i}x.png").write_bytes(b"")
    coordinates(root / "B" / "7x.png", BLUE["B"], SIZE, alpha=254)
    paired(root, "channels=4", "data.val_fraction=0.001")


def test_only_a_few_targets_are_looked_at(tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(
        "distill.data.pairs.Pair.read",
        lambda pair, **_: (None, read.append(pair.name) or Image.new("RGBA", (9, 9), "red")),
    )
    two_folders(tmp_path, count=100)
    with pytest.raises(DistillError, match="are opaque"):
        paired(tmp_path, "channels=4")
    assert 8 <= len(read) <= 16
    assert len({*read}) == len(read)


def test_the_outlines_train_both_ways(assets):
    """Real pairs side by side, of several heights."""
    root = assets / "pairs" / "outline_ab"
    data = paired(
        root, "data.direction=BtoA", "data.size=286", "data.crop_size=256", "data.pad=white"
    )
    test = find_pairs(root, None, 0.1, 0, 0.1)["test"]
    assert len(data.train) + len(data.val) + len(test) == 139
    item = data.train[0]
    assert item["photo"].shape == item["target"].shape == (256, 256, 3)
    paper = [
        (data.val[i][key] > 225).float().mean() for i in range(7) for key in ("photo", "target")
    ]
    assert min(paper[::2]) > 0.8  # outlines are the input
    assert np.mean(paper[1::2]) < np.mean(paper[::2])


# Two domains


def test_two_domains_from_a_folder_or_from_two(tmp_path):
    two_folders(tmp_path / "set", a="trainA", b="trainB")
    two_folders(tmp_path / "set", a="testA", b="testB", count=3)
    data = unpaired(f"data.root={tmp_path / 'set'}")
    assert (len(data.train), len(data.val)) == (12, 3)
    for dataset in (data.train, data.val):
        assert blue(dataset[0]) == {"a": 10, "b": 20}
        assert side(dataset[0]) == {(64, 64, 3)}
    a, b = (tmp_path / "set" / name for name in ("trainB", "testA"))
    split = unpaired(f"data.a={a}", f"data.b={b}")
    assert blue(split.train[0]) == {"a": 20, "b": 10}
    lengths = [len(split.train.domains[domain]) for domain in "ab"]
    assert lengths != [12, 3]  # some held out
    assert (split.batch_size, split.val_limit) == (1, 64)


@pytest.mark.campaign
def test_the_settings_of_two_domains_reach_them(tmp_path):
    root = f"data.root={two_folders(tmp_path)}"
    still = unpaired(root, "data.flip=false", "data.size=64")
    assert len({still.train[p]["a"].numpy().tobytes() for p in range(8)}) == 1
    varied = unpaired(root, "data.flip=false", "data.size=64", "data.colour=0.3")
    assert len({varied.train[p]["b"].numpy().tobytes() for p in range(8)}) == 8
    assert side(unpaired(root).val[0]) == {(64, 64, 3)}
    one, other = unpaired(root), unpaired(root, "seed=1")
    assert any(not torch.equal(one.train[p]["a"], other.train[p]["a"]) for p in range(3))


# What cannot be


WRONG = {
    "no pairs named": (lambda root: paired("null"), "data.root=null: recipe=pix2pix learns from"),
    "no domains named": (
        lambda root: unpaired(),
        "data.root=null: no pictures to learn from; give",
    ),
    "crop of pairs": (
        lambda root: paired(two_folders(root), "data.size=48"),
        "data.size=48: smaller than the crop taken from it, data.crop_size=64",
    ),
    "crop of domains": (
        lambda root: unpaired(f"data.root={two_folders(root)}", "data.size=48"),
        "data.size=48: smaller than the crop",
    ),
    "pairs to hold out alone": (
        lambda root: paired(two_folders(root / "val").parent),
        "has val/ but no train/, nothing to learn from",
    ),
    "domains to hold out alone": (
        lambda root: unpaired(f"data.root={two_folders(root, a='testA', b='testB')}"),
        "nothing to learn from",
    ),
    "opaque": (
        lambda root: paired(two_folders(root), "channels=4"),
        "channels=4 needs targets with transparency",
    ),
    "no folder": (lambda root: paired(root / "no"), "no: no such folder"),
    "zoom of photos": (
        lambda root: datamodule.data_module(
            compose.load("train", ["data=photos", f"photos={root}", "data.zoom=0.2"], Train)
        ),
        "data.zoom=0.2: of pairs; the random squares of data=photos",
    ),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.slow
def test_what_cannot_be_learnt_from_ends_in_one_line(tmp_path, case):
    make, said = WRONG[case]
    assert said in refusal(make, tmp_path)


def test_more_processes_than_cores_are_no_warning(recwarn):
    """torch advises against them; distill.shards printed that among its lines."""
    ErrorForwardingLoader([0], None, num_workers=1000)
    assert not [each for each in recwarn if "worker processes" in str(each.message)]
