import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from distill.core.errors import DistillError
from distill.data.datamodule import DistillData
from distill.data.photos import Photo
from distill.data.sampler import StreamSampler
from distill_gan.unpaired_set import UnpairedSet
from support.coordinate_pictures import coordinates


def photos(folder, count, blue):
    names = [f"{i}.png" for i in range(count)]
    return [Photo(coordinates(folder / name, blue), name) for name in names]


def both(folder, a, b, **settings):
    options = {"size": 96, "train": True, "crop_size": 64} | settings
    return UnpairedSet(photos(folder / "a", a, 10), photos(folder / "b", b, 20), **options)


def where(picture):
    """(left, top, mirrored) of a crop, read off its pixels; every pixel must agree."""
    x, y = picture[..., 0].int(), picture[..., 1].int()
    mirrored = bool(x[0, 0] > x[0, -1])
    row = x[0].flip(0) if mirrored else x[0]
    left, top = int(row[0]), int(y[0, 0])
    side = len(picture)
    assert torch.equal(row, torch.arange(left, left + side, dtype=torch.int))
    assert torch.equal(y[:, 0], torch.arange(top, top + side, dtype=torch.int))
    assert bool((x == x[0]).all())
    assert bool((y == y[:, :1]).all())
    return left, top, mirrored


def test_each_domain_comes_once_per_pass_of_its_own(tmp_path):
    data = both(tmp_path, 5, 3)
    assert len(data) == 5
    items = [data[p] for p in range(30)]
    for key, count in (("name", 5), ("name_b", 3)):
        names = [item[key] for item in items]
        passes = [tuple(names[i : i + count]) for i in range(0, 30, count)]
        assert all(sorted(each) == [f"{i}.png" for i in range(count)] for each in passes)
        assert len(set(passes)) > 1
    assert all(
        (item["a"][..., 2] == 10).all() and (item["b"][..., 2] == 20).all() for item in items
    )


def test_the_domains_of_equal_length_are_two_independent_streams(tmp_path):
    data = both(tmp_path, 4, 4)
    met = {(data[p]["name"], data[p]["name_b"]) for p in range(120)}
    assert len(met) == 16  # of one stream there would be 4


def test_crop_and_mirror_are_independent_for_each_domain(tmp_path):
    data = both(tmp_path, 2, 2)
    places = [(where(data[p]["a"]), where(data[p]["b"])) for p in range(60)]
    lefts, tops, mirrored = (np.array([[a[k], b[k]] for a, b in places]) for k in range(3))
    for offsets in (lefts, tops):
        assert offsets.min() >= 0
        assert offsets.max() <= 32
        assert (offsets.max(0) - offsets.min(0)).min() > 24
        assert (offsets[:, 0] != offsets[:, 1]).mean() > 0.8
    assert {tuple(coins) for coins in mirrored.tolist()} == {
        (False, False), (False, True), (True, False), (True, True),
    }  # fmt: skip
    straight = both(tmp_path, 2, 2, flip=False)
    assert not any(where(straight[p][domain])[2] for p in range(8) for domain in "ab")


def test_to_validate_pictures_come_in_turn_as_they_are(tmp_path):
    data = both(tmp_path, 5, 2, train=False, crop_size=96)
    assert len(data) == 5
    assert [data[i]["name"] for i in range(5)] == [f"{i}.png" for i in range(5)]
    assert [data[i]["name_b"] for i in range(5)] == ["0.png", "1.png", "0.png", "1.png", "0.png"]
    assert {where(data[i][domain]) for i in range(5) for domain in "ab"} == {(0, 0, False)}
    small = both(tmp_path, 5, 2, train=False, crop_size=64, colour=0.5)[0]["a"]
    assert small.shape == (64, 64, 3)
    assert set(small[..., 2].unique().tolist()) == {10}  # no colours are varied


def test_padding_keeps_what_the_centre_square_cuts(tmp_path):
    wide = [Photo(coordinates(tmp_path / "w.png", 50, (96, 64)), "w.png")]
    cut = UnpairedSet(wide, wide, 64, False, 64)[0]["a"]
    assert where(cut) == (16, 0, False)
    padded = UnpairedSet(wide, wide, 96, False, 96, pad="white")[0]["b"]
    assert torch.equal(padded[16:80, :, 0].int(), torch.arange(96).int().expand(64, 96))
    assert bool((padded[:16] == 255).all())
    assert bool((padded[80:] == 255).all())


def test_colours_vary_in_training_when_asked(tmp_path):
    Image.new("RGB", (96, 96), (100, 100, 100)).save(tmp_path / "x.png")
    one = [Photo(tmp_path / "x.png", "x.png")]
    varied = UnpairedSet(one, one, 96, True, 64, colour=0.3)
    levels = [(int(varied[p]["a"][0, 0, 0]), int(varied[p]["b"][0, 0, 0])) for p in range(12)]
    assert len({a for a, _ in levels}) > 6
    assert sum(a != b for a, b in levels) > 6
    plain = UnpairedSet(one, one, 96, True, 64)
    assert all(set(plain[p]["a"].unique().tolist()) == {100} for p in range(4))


def test_a_run_that_goes_on_sees_what_it_would_have_seen(tmp_path):
    data, start = both(tmp_path, 5, 3), 3
    loader = DataLoader(data, 1, sampler=StreamSampler(12, start), num_workers=2)
    fresh = both(tmp_path, 5, 3)
    loaded = list(loader)
    assert len(loaded) == 9
    for position, batch in enumerate(loaded, start):
        wanted = fresh[position]
        assert (batch["name"], batch["name_b"]) == ([wanted["name"]], [wanted["name_b"]])
        assert all(torch.equal(batch[domain][0], wanted[domain]) for domain in "ab")
    other = both(tmp_path, 5, 3, seed=1)
    assert any(not torch.equal(fresh[p]["a"], other[p]["a"]) for p in range(3))


def test_bad_pictures_are_replaced_by_the_next_of_their_domain_and_named_once(tmp_path, capsys):
    data = both(tmp_path, 3, 3, train=False)
    (tmp_path / "b" / "1.png").write_bytes(b"")
    assert [data[i]["name_b"] for i in (0, 1, 2, 1)] == ["0.png", "2.png", "2.png", "2.png"]
    assert [data[i]["name"] for i in (0, 1, 2, 1)] == ["0.png", "1.png", "2.png", "1.png"]
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert str(tmp_path / "b" / "1.png") in said


def test_a_domain_without_a_readable_picture_is_an_error(tmp_path):
    data = both(tmp_path, 2, 2)
    for i in range(2):
        (tmp_path / "b" / f"{i}.png").write_text("<html>")
    with pytest.raises(DistillError, match="no picture of B of the training set can be read"):
        data[0]


def test_batches_hold_both_domains_as_pictures(tmp_path):
    data = DistillData(both(tmp_path, 2, 2), both(tmp_path, 2, 2, train=False), 2)
    (raw,) = data.first_batches(1)
    batch = data.on_after_batch_transfer(raw, 0)
    for domain, blue in (("a", 10), ("b", 20)):
        assert batch[domain].shape == (2, 3, 64, 64)
        assert batch[domain].dtype == torch.float32
        assert torch.equal(batch[domain][:, 2], torch.full((2, 64, 64), blue / 255))
