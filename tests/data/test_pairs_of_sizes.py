"""Pictures of a set of several sizes: squares, crops of whole pictures, thumbnails, validation."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from PIL import Image
from torch.utils.data import DataLoader

from distill.config import compose
from distill.config.settings.training import Prepare, Train
from distill.core.errors import DistillError
from distill.data import datamodule
from distill.data.address import Address
from distill.data.augment import recolour, rng_for
from distill.data.datasets import BLOCK, HeldOutPairs, MixedPairs, PairSet, thumbnail_pixels
from distill.data.kinds.registry import data_source
from distill.data.manifest import Manifest, write_manifest
from distill.data.pairs import Pair, find_pairs
from distill.data.photo_table import size_of
from distill.data.sampler import MixedStreams, StreamSampler, of_one_shape
from distill.models.students.global_statistics import thumbnail_of
from distill_scale.shards.packing import pack
from distill_sets.sketches import sketch_set
from support.coordinate_pictures import coordinates
from support.last_checkpoints import differences

SIDE = 64
WHOLE = {96: (96, 64), 128: (96, 128), 192: (192, 128)}  # width and height of each size
BLUE = {"photo": 10, "stylized": 200}
MANIFEST = Manifest("here", "negative", "print", size=SIDE, sizes=(96, 128, 192))
COUNTS = {"train": 6, "val": 4, "test": 2}


def write_set(root, squares=True, manifest=MANIFEST, skip=()):
    """Pairs whose red is x, whose green is y and whose blue says which side it is."""
    for side, count in COUNTS.items():
        for n in range(count):
            names = {f"{side}{n}-00000000.png": (SIDE, SIDE)} if squares else {}
            own = [[*WHOLE][n % 3]] if side == "train" else [*WHOLE]
            names |= {f"{side}{n}-00000000-s{size}.png": WHOLE[size] for size in own}
            for name, size in names.items():
                for kind, blue in BLUE.items():
                    if size_of(name) not in skip:
                        coordinates(root / side / kind / name, blue, size)
    if manifest:
        write_manifest(root, manifest, COUNTS)
    return root


def load(root, *more):
    words = [f"data.root={root}", "style=own", f"style.resolution={SIDE}", "data.workers=0"]
    sizes = ["data.sizes=[96,128,192]", "data.crop_size=64"]
    settings = compose.load("train", [*words, *sizes, *more], Train)
    data_source(settings).check_labelled_sizes()
    return datamodule.data_module(settings)


@pytest.fixture(params=["pairs", "raw", "qoi", "png"])
def data(request, tmp_path):
    """Of a folder, and of its shards."""
    root = write_set(tmp_path / "set")
    if request.param == "pairs":
        return load(root, "data.flip=true")
    pytest.importorskip("pyarrow", reason="needs the extra shards")
    if request.param == "qoi":
        pytest.importorskip("qoi", reason="needs the extra shards")
    pack(root, Address(tmp_path / "shards"), request.param, 4, (0.1, 0, 0.1))
    return load(tmp_path / "shards", "data=shards", "data.flip=true")


def whole_thumbnail(size, blue=BLUE["photo"]):
    """By torch, of the whole picture of coordinates, uint8 (256, 256, 3)."""
    width, height = size
    red, green = np.meshgrid(np.arange(width), np.arange(height))
    picture = np.stack([red, green, np.full_like(red, blue)]).astype(np.float32)
    shown = F.interpolate(
        torch.from_numpy(picture)[None], (256, 256), mode="bilinear", antialias=True
    )
    return shown[0].round().byte().permute(1, 2, 0)


def near(one, other):
    """Rounded after other sums of the same numbers."""
    return one.shape == other.shape and (one.int() - other.int()).abs().max() <= 1


# Training


def test_both_sides_are_the_same_crop_and_the_thumbnail_is_the_whole_picture_s(data):
    assert isinstance(data.train, MixedPairs)
    seen, mirrored, crops = set(), set(), 0
    for position in range(120):
        item = data.train[position]
        photo, target = item["photo"].int(), item["target"].int()
        assert photo.shape == target.shape == (SIDE, SIDE, 3)
        assert torch.equal(photo[..., :2], target[..., :2])
        assert (photo[..., 2] == BLUE["photo"]).all()
        assert (target[..., 2] == BLUE["stylized"]).all()
        step = -1 if photo[0, 0, 0] > photo[0, -1, 0] else 1
        left, top = int(photo[0, :, 0].min()), int(photo[0, 0, 1])
        x = torch.arange(left, left + SIDE)
        assert torch.equal(photo[0, :, 0], x if step > 0 else x.flip(0))
        assert torch.equal(photo[:, 0, 1], torch.arange(top, top + SIDE))
        size = size_of(item["name"])
        expected = whole_thumbnail(WHOLE[size] if size else (SIDE, SIDE))
        assert near(item["thumbnail"], expected if step > 0 else expected.flip(1))
        crops += size is not None
        seen.add((item["name"], left, top))
        mirrored.add(step)
    assert mirrored == {-1, 1}
    assert 50 < crops < 90  # of 120, 57 %
    assert len({name for name, _, _ in seen}) == 2 * COUNTS["train"]
    assert len(seen) > 60


def test_a_square_of_256_is_its_own_thumbnail(tmp_path):
    coordinates(tmp_path / "p.png", 1, (256, 256))
    pairs = PairSet([Pair(tmp_path / "p.png", tmp_path / "p.png")], 256, True, thumbnail=True)
    for position in range(6):
        item = pairs[position]
        assert torch.equal(item["thumbnail"], item["photo"])


@pytest.mark.parametrize("shape", [(96, 160, 3), (512, 384, 3), (64, 64, 3), (256, 512, 3)])
def test_thumbnails_are_those_that_a_student_makes(shape):
    photo = torch.from_numpy(np.random.default_rng(0).integers(0, 256, shape, np.uint8))
    own = thumbnail_of(photo.permute(2, 0, 1)[None] / 255)[0].mul(255).round().byte()
    assert torch.equal(thumbnail_pixels(photo), own.permute(1, 2, 0))


def test_colours_of_the_photo_are_those_of_its_thumbnail(tmp_path):
    root = write_set(tmp_path)
    plain, varied = (load(root, f"data.photo_colour={by}").train.sets[1] for by in (0, 0.4))
    changed = 0
    for place in range(12):
        before, after = plain[place], varied[place]
        assert torch.equal(before["target"], after["target"])
        with Image.open(root / "train" / "photo" / after["name"]) as photo:
            rng = rng_for(varied.seed, "photo colour", place)
            whole = torch.from_numpy(np.array(recolour(photo, 0.4, rng)))
        top, left = int(after["target"][0, 0, 1]), int(after["target"][0, 0, 0])
        assert torch.equal(after["photo"], whole[top : top + SIDE, left : left + SIDE])
        assert torch.equal(after["thumbnail"], thumbnail_pixels(whole))
        changed += not torch.equal(before["photo"], after["photo"])
    assert changed == 12


def test_zoomed_crops_keep_the_whole_picture_s_thumbnail(tmp_path):
    train = load(write_set(tmp_path), "data.zoom=0.3").train
    spans = set()
    for position in range(30):
        item = train[position]
        assert item["photo"].shape == (SIDE, SIDE, 3)
        assert torch.equal(item["photo"][..., :2], item["target"][..., :2])
        size = size_of(item["name"])
        assert near(item["thumbnail"], whole_thumbnail(WHOLE[size] if size else (SIDE, SIDE)))
        spans.add(int(item["photo"][0, -1, 0]) - int(item["photo"][0, 0, 0]))
    assert len(spans) > 5


def test_a_share_of_1_is_crops_alone_and_takes_larger_ones(tmp_path):
    train = load(write_set(tmp_path), "data.share_of_sizes=1", "data.crop_size=96",
                 "data.sizes=[128,192]").train  # fmt: skip
    items = [train[position] for position in range(12)]
    assert {size_of(item["name"]) for item in items} == {128, 192}
    assert {tuple(item["photo"].shape) for item in items} == {(96, 96, 3)}


def test_crops_larger_than_the_squares_come_in_batches_of_their_own(tmp_path):
    data = load(write_set(tmp_path), "data.crop_size=96", "data.sizes=[128,192]",
                "data.share_of_sizes=0.5", "data.batch_size=4")  # fmt: skip
    batches, kinds = list(data.first_batches(16)), set()
    for batch in batches:
        of_squares = {size_of(name) is None for name in batch["name"]}
        kinds.add((*batch["photo"].shape, *of_squares))
    assert kinds == {(4, 96, 96, 3, False), (4, SIDE, SIDE, 3, True)}
    resumed = next(iter(DataLoader(data.train, 4, sampler=StreamSampler(64, 36, batch=4))))
    assert not differences(resumed, batches[9])


def test_a_set_without_squares_is_trained_on_crops_alone(tmp_path):
    data = load(write_set(tmp_path, squares=False))
    assert all(size_of(data.train[position]["name"]) for position in range(12))
    assert isinstance(data.val, HeldOutPairs)
    assert len(data.val) == 3 * COUNTS["val"]


def test_pictures_that_are_smaller_than_a_crop_are_passed_over(tmp_path, capsys):
    root = write_set(tmp_path)
    for kind, blue in BLUE.items():
        coordinates(root / "train" / kind / "train2-00000000-s192.png", blue, (192, 64))
    words = ["data.share_of_sizes=1", "data.crop_size=96", "data.sizes=[128,192]"]
    train = load(root, *words).train
    names = set()
    for position in range(20):
        assert train[position]["photo"].shape == (96, 96, 3)
        names.add(train[position]["name"])
    assert len(names) == 3  # of two photos at each size
    assert capsys.readouterr().out.count("192×64 pixels: smaller than data.crop_size=96") == 1


# The order


def test_of_every_block_each_stream_has_its_share_and_all_its_places():
    streams = MixedStreams([3, 7], 0, "sizes")
    places = [streams.place(position) for position in range(60)]
    for block in range(6):
        own = [stream for stream, _ in places[10 * block : 10 * (block + 1)]]
        assert (own.count(0), own.count(1)) == (3, 7)
    for stream, count in ((0, 18), (1, 42)):
        assert [place for which, place in places if which == stream] == [*range(count)]
    other = MixedStreams([3, 7], 0, "sizes")
    assert [other.place(p) for p in (59, 0, 31, 12)] == [places[p] for p in (59, 0, 31, 12)]
    assert [MixedStreams([3, 7], 1, "sizes").place(p) for p in range(60)] != places


def test_the_share_is_that_of_the_settings(tmp_path):
    train = load(write_set(tmp_path), "data.share_of_sizes=0.25").train
    which = [train.streams.place(position)[0] for position in range(BLOCK)]
    assert sum(which) == BLOCK / 4


def on_cpu(data, step):
    """The data of a trainer that has done so many steps of six."""
    trainer = pl.Trainer(accelerator="cpu", max_steps=6, logger=False, enable_checkpointing=False)
    progress = trainer.fit_loop.epoch_loop.automatic_optimization.optim_progress
    progress.optimizer.step.total.completed = step
    data.trainer = trainer
    return [data.on_after_batch_transfer(batch, 0) for batch in data.train_dataloader()]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("step", [0, 4])
@pytest.mark.slow
def test_batches_go_on_at_the_steps_that_are_done(tmp_path, workers, step):
    """With workers they come through shared memory."""
    root = write_set(tmp_path)
    words = ["data.batch_size=3", f"data.workers={workers}"]
    batches = on_cpu(load(root, *words), step)
    train = load(root).train
    assert len(batches) == 6 - step
    for number, batch in enumerate(batches, start=step):
        items = [train[3 * number + i] for i in range(3)]
        assert batch["name"] == [item["name"] for item in items]
        for key, side in (("photo", SIDE), ("target", SIDE), ("thumbnail", 256)):
            assert batch[key].shape == (3, 3, side, side)
            stored = torch.stack([item[key] for item in items]).permute(0, 3, 1, 2)
            assert torch.equal(batch[key], stored / 255)


# Validation


def test_validation_pictures_are_whole_and_a_batch_has_one_shape(data):
    data.batch_size = 1  # 256² pixels
    batches = [*data.val_dataloader()]
    again = [*data.val_dataloader()]
    assert [b["name"] for b in batches] == [b["name"] for b in again]
    names = [name for batch in batches for name in batch["name"]]
    assert len(names) == len({*names}) == 4 * COUNTS["val"]
    assert {name[:3] for name in names} == {"val"}
    for batch in batches:
        (size,) = {size_of(name) for name in batch["name"]}
        width, height = WHOLE[size] if size else (SIDE, SIDE)
        count = len(batch["name"])
        assert batch["photo"].shape == batch["target"].shape == (count, height, width, 3)
        assert count * width * height <= 256**2
        for photo, target, thumbnail in zip(
            batch["photo"], batch["target"], batch["thumbnail"], strict=True
        ):
            assert torch.equal(photo[0, :, 0], torch.arange(width).byte())
            assert torch.equal(photo[:, 0, 1], torch.arange(height).byte())
            assert torch.equal(photo[..., :2], target[..., :2])
            assert near(thumbnail, whole_thumbnail((width, height)))
    sizes = [size_of(batch["name"][0]) for batch in batches]
    assert sizes[0] is None
    assert sorted(sizes[1:]) == [96, 128, 192, 192]


def test_a_limited_validation_is_of_every_size(tmp_path):
    data = load(write_set(tmp_path), "data.val_limit=4")
    names = [name for batch in data.val_dataloader() for name in batch["name"]]
    assert [size_of(name) for name in names] == [None, 96, 128, 192]


def test_a_picture_that_cannot_be_read_leaves_its_batch(tmp_path):
    root = write_set(tmp_path)
    damaged = root / "val" / "photo" / "val3-00000000-s96.png"
    damaged.write_bytes(damaged.read_bytes()[:-30])  # the next one is of another shape
    batches = [*load(root).val_dataloader()]
    assert [len(batch["name"]) for batch in batches if size_of(batch["name"][0]) == 96] == [3]


def test_pictures_of_one_shape_stand_together_with_so_many_pixels_at_most():
    shapes = [(2, 3), (4, 4), (2, 3), (3, 2), (2, 3), (4, 4), (9, 9)]
    assert of_one_shape(shapes, 12) == [[0, 2], [4], [1], [5], [3], [6]]
    assert of_one_shape([], 12) == []


# Beside sets of one size


def test_without_sizes_a_set_is_its_squares(tmp_path):
    root = write_set(tmp_path)
    words = [f"data.root={root}", "style=own", f"style.resolution={SIDE}", "data.workers=0"]
    data = datamodule.data_module(compose.load("train", words, Train))
    assert (len(data.train), len(data.val)) == (COUNTS["train"], COUNTS["val"])
    item = data.train[0]
    assert item.keys() == {"photo", "target", "name"}
    assert item["photo"].shape == (SIDE, SIDE, 3)
    for each in (root, write_set(tmp_path / "one's own", manifest=None)):
        found = find_pairs(each, None, 0.1, 0)
        whole = any(size_of(pair.name) for pairs in found.values() for pair in pairs)
        assert whole == (each != root)  # a name is only a name where no manifest says so


def error(call, *arguments):
    with pytest.raises(DistillError) as raised:
        call(*arguments)
    return str(raised.value)


@pytest.mark.parametrize("packed", [False, True])
def test_a_set_of_one_size_is_one_line(tmp_path, packed):
    root = write_set(tmp_path / "set", manifest=replace(MANIFEST, sizes=()), skip=WHOLE)
    more: list[Any] = []
    if packed:
        pytest.importorskip("pyarrow", reason="needs the extra shards")
        pack(root, Address(tmp_path / "shards"), "raw", 4, (0.1, 0, 0.1))
        root, more = tmp_path / "shards", ["data=shards"]
    said = error(load, root, *more)
    assert said.startswith(f"data.sizes=[96, 128, 192]: {root} has squares alone, of one size")
    assert "distill.prepare" in said


def test_other_sizes_than_the_set_s_are_one_line(tmp_path):
    said = error(load, write_set(tmp_path), "data.sizes=[128,192,320]")
    assert "has whole pictures of [96, 128, 192]; set data.sizes=[96, 128, 192]" in said
    some = load(write_set(tmp_path), "data.sizes=[128,192]").train
    assert {size_of(some[p]["name"]) for p in range(40)} == {None, 128, 192}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["data.crop_size=128"], "data.crop_size=128: larger than pictures of data.sizes=[96, "),
        (
            ["data=pairs", "data.sizes=null", "data.crop_size=96"],
            "data.crop_size=96: above style.resolution=64; lower it",
        ),
        (["data.sizes=[64]"], "data.sizes=[64]: none is larger than style.resolution=64"),
        (["data=photos"], "data.sizes=[96, 128, 192]: whole pictures are labelled once"),
        (["data.align=true"], "data.align=true: of squares only"),
        (["data.sizes=[100]"], "data.sizes.0=100: input should be a multiple of 32"),
        (["data.sizes=[32]"], "data.sizes.0=32: input should be greater than or equal to 64"),
        (["data.sizes=[128,96]"], "data.sizes=[128, 96]: want each size once, the smallest first"),
        (["data.sizes=[96,96]"], "data.sizes=[96, 96]: want each size once, the smallest first"),
        (["data.sizes=[]"], "data.sizes=[]: "),
        (["data.share_of_sizes=0"], "data.share_of_sizes=0: input should be greater than 0"),
    ],
)
def test_what_does_not_fit_is_one_line(tmp_path, words, said):
    assert error(load, write_set(tmp_path), *words).startswith(said)


def test_whole_pictures_that_are_all_gone_are_one_line(tmp_path):
    root = write_set(tmp_path, skip=WHOLE)
    assert "has no whole picture of data.sizes=[96, 128, 192] to train on" in error(load, root)


def test_sketches_have_one_size(here):
    settings = compose.load("prepare", ["recipe.name=pix2pix", "data.sizes=[512]"], Prepare)
    assert "sketches are squares" in error(sketch_set.check, settings)


def test_data_sizes_brings_what_belongs_to_it():
    train = compose.load("train", ["data=sizes"], Train)
    assert (train.data.sizes, train.data.crop_size) == ([256, 512, 768, 1024], 256)
    assert (train.data.kind, train.global_statistics) == ("pairs", "thumbnail")
    prepared = compose.load("prepare", ["data=sizes"], Prepare)
    assert prepared.data.sizes == [256, 512, 768, 1024]
    assert compose.load("train", [], Train).data.sizes is None
    assert data_source(train).check_sizes() is None
