import hashlib
import pickle

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from distill.core.errors import DistillError
from distill.data.datamodule import DistillData
from distill.data.datasets import UnpairedSet
from distill.data.domains import find_unpaired
from distill.data.photos import Photo
from distill.data.sampler import Stream

PEOPLE = [f"Person{letter}" for letter in "abcdefghijklmnop"]


def fill(folder, names):
    """Files that need no reading: where pictures lie is told by their names alone."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    return folder


def coordinates(path, blue, size=(96, 96)):
    """A picture whose red is x and whose green is y, so that a pixel says where it was."""
    picture = np.full((size[1], size[0], 3), blue, np.uint8)
    picture[..., 0], picture[..., 1] = np.arange(size[0]), np.arange(size[1])[:, None]
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(path)
    return path


def photos(folder, count, blue):
    names = [f"{i}.png" for i in range(count)]
    return [Photo(coordinates(folder / name, blue), name) for name in names]


def keys(sides):
    return {
        side: tuple([p.key for p in photos] for photos in looks) for side, looks in sides.items()
    }


def share(name, seed):
    """Where the hash of seed and group falls in [0, 1)."""
    return int(hashlib.sha256(f"{seed}:{name}".encode()).hexdigest()[:16], 16) / 16**16


# Finding


@pytest.mark.parametrize("val", ["test", "val", "valid"])
@pytest.mark.parametrize("pattern", ["{}A {}B", "{}/A {}/B"])
def test_folders_to_train_on_and_to_hold_out_are_the_two_sides(tmp_path, val, pattern):
    for side, names in (("train", ["x.jpg", "deep/er/y.png"]), (val, ["z.webp"])):
        for look, folder in zip("ab", pattern.format(side, side).split(), strict=True):
            fill(tmp_path / folder, [f"{look}-{name}" for name in names])
    assert keys(find_unpaired(tmp_path, None, None, 0.1, 0)) == {
        "train": (["a-deep/er/y.png", "a-x.jpg"], ["b-deep/er/y.png", "b-x.jpg"]),
        "val": (["a-z.webp"], ["b-z.webp"]),
    }


def test_what_is_held_out_alone_is_there_to_be_evaluated_on(tmp_path):
    fill(tmp_path / "testA", ["a.png"])
    fill(tmp_path / "testB", ["b.png"])
    found = keys(find_unpaired(tmp_path, None, None, 0.1, 0))
    assert found == {"train": ([], []), "val": (["a.png"], ["b.png"])}


def two(layout, root):
    """Where A and B lie, and the arguments that find them."""
    if layout == "anywhere":
        a, b = root / "photos", root / "elsewhere" / "drawn"
        return a, b, (None, a, b)
    names = {"plain": ("A", "B"), "train": ("trainA", "trainB")}[layout]
    return root / names[0], root / names[1], (root, None, None)


@pytest.mark.parametrize("layout", ["plain", "train", "anywhere"])
def test_otherwise_the_split_is_by_a_hash_of_the_names(tmp_path, layout):
    a, b, given = two(layout, tmp_path)
    first = [f"{person}_{n:04d}.jpg" for person in PEOPLE[:12] for n in (1, 2)]
    second = [f"x/{person}_{n:04d}.png" for person in PEOPLE[6:] for n in (3, 4, 5)]
    fill(a, first), fill(b, second)
    sides = keys(find_unpaired(*given, 0.4, 5))
    for look, names in enumerate((first, second)):
        person = {name: name.split("/")[-1].split("_")[0] for name in names}
        assert sides["val"][look] == [n for n in names if share(person[n], 5) < 0.4]
        assert sides["train"][look] == [n for n in names if share(person[n], 5) >= 0.4]
        assert sides["val"][look]
    assert keys(find_unpaired(*given, 0.4, 5)) == sides
    assert keys(find_unpaired(*given, 0.4, 6)) != sides


def test_who_is_held_out_of_a_small_folder_is_held_out_of_both(tmp_path):
    # By the hashes nobody of A would be held out; the lower one is, and B's pictures of that one.
    low = sorted(PEOPLE, key=lambda name: share(name, 0))
    few, many = low[6:8], low[2:]
    fill(tmp_path / "A", [f"{person}_0001.png" for person in few])
    fill(tmp_path / "B", [f"{person}_{n:04d}.png" for person in many for n in (1, 2)])
    fraction = (share(low[5], 0) + share(low[6], 0)) / 2
    sides = keys(find_unpaired(tmp_path, None, None, fraction, 0))
    held_out, learnt = (
        {n.split("_")[0] for look in sides[s] for n in look} for s in ("val", "train")
    )
    assert held_out == {*low[2:6], low[6]}
    assert not held_out & learnt
    assert all(looks for side in sides.values() for looks in side)


def test_one_person_in_both_folders_is_split_picture_by_picture(tmp_path, capsys):
    for look in "AB":
        fill(tmp_path / look, [f"frame_x_{n:04d}.png" for n in range(6)])
    sides = keys(find_unpaired(tmp_path, None, None, 0.3, 0))
    assert all(looks for side in sides.values() for looks in side)
    assert "too few groups" in capsys.readouterr().out


def half_a_test(root):
    for name in ("A", "B", "testA"):
        fill(root / name, ["a.png", "b.png"])
    return root


def same_folder(root):
    fill(root / "A", ["a.png", "b.png"])
    return root / "A", root / "A" / ".." / "A"


WRONG = {
    "nothing": (lambda root: (None, None, None), "data.root=null: no pictures to learn from; give"),
    "b alone": (lambda root: (None, None, root), "data.a=null: data.b="),
    "a alone": (lambda root: (None, root, None), "data.b=null: data.a="),
    "both ways": (lambda root: (root, root, root), "give either"),
    "no root": (lambda root: (root / "no", None, None), "no: no such folder; give a folder with"),
    "no folders": (lambda root: (root, None, None), "no two folders of pictures in it; give"),
    "no B": (
        lambda root: (fill(root / "trainA", ["a.png"]).parent, None, None),
        "holds trainA/ but no trainB/; give",
    ),
    "no A": (
        lambda root: (fill(root / "train" / "B", ["a.png"]).parents[1], None, None),
        "holds train/B/ but no train/A/; give",
    ),
    "no testB": (
lambda root: (half_a_test(root), None, None),
        "holds testA/ but no testB/; give",
    ),
    "no folder a": (
        lambda root: (None, root / "no", fill(root / "b", ["b.png"])),
        "no: no such folder; put photos there",
    ),
    "empty b": (
        lambda root: (None, fill(root / "a", ["a.png"]), fill(root / "b", ["b.txt"])),
        "b: no jpg, jpeg, png or webp in it",
    ),
    "empty B": (
        lambda root: (fill(fill(root / "A", ["a.png"]).parent / "B", ["b.gif"]).parent, None, None),
        "B: no jpg, jpeg, png or webp in it",
    ),
    "twice": (lambda root: (None, *same_folder(root)), "given for A and for B"),
    "inside": (
        lambda root: (None, root, fill(root / "b", ["b.png"])),
        "one lies inside the other",
    ),
    "one picture": (
        lambda root: (None, fill(root / "a", ["a.png", "b.png"]), fill(root / "b", ["b.png"])),
        "b.png: one picture alone cannot be split",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_two_looks_ends_in_one_line(tmp_path, case):
    make, said = WRONG[case]
    with pytest.raises(DistillError) as error:
        find_unpaired(*make(tmp_path), 0.1, 0)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_link_to_the_other_folder_is_the_same_folder(tmp_path):
    fill(tmp_path / "trainA", ["a.png", "b.png"])
    (tmp_path / "trainB").symlink_to(tmp_path / "trainA")
    with pytest.raises(DistillError, match="given for A and for B"):
        find_unpaired(tmp_path, None, None, 0.1, 0)


# What a position gives


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


def test_each_look_comes_once_per_pass_of_its_own(tmp_path):
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


def test_the_looks_of_equal_length_are_two_independent_streams(tmp_path):
    data = both(tmp_path, 4, 4)
    met = {(data[p]["name"], data[p]["name_b"]) for p in range(120)}
    assert len(met) == 16  # of one stream there would be 4


def test_crop_and_mirror_are_drawn_for_each_look(tmp_path):
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
    assert not any(where(straight[p][look])[2] for p in range(8) for look in "ab")


def test_to_validate_pictures_come_in_turn_as_they_are(tmp_path):
    data = both(tmp_path, 5, 2, train=False, crop_size=96)
    assert len(data) == 5
    assert [data[i]["name"] for i in range(5)] == [f"{i}.png" for i in range(5)]
    assert [data[i]["name_b"] for i in range(5)] == ["0.png", "1.png", "0.png", "1.png", "0.png"]
    assert {where(data[i][look]) for i in range(5) for look in "ab"} == {(0, 0, False)}
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
    loader = DataLoader(data, 1, sampler=Stream(12, start), num_workers=2)
    fresh = both(tmp_path, 5, 3)
    loaded = list(loader)
    assert len(loaded) == 9
    for position, batch in enumerate(loaded, start):
        wanted = fresh[position]
        assert (batch["name"], batch["name_b"]) == ([wanted["name"]], [wanted["name_b"]])
        assert all(torch.equal(batch[look][0], wanted[look]) for look in "ab")
    other = both(tmp_path, 5, 3, seed=1)
    assert any(not torch.equal(fresh[p]["a"], other[p]["a"]) for p in range(3))


def test_a_dataset_can_be_sent_to_a_process_that_is_no_copy(tmp_path):
    data = both(tmp_path, 3, 2)
    there = pickle.loads(pickle.dumps(data))
    assert torch.equal(there[7]["b"], data[7]["b"])


def test_bad_pictures_are_replaced_by_the_next_of_their_look_and_named_once(tmp_path, capsys):
    data = both(tmp_path, 3, 3, train=False)
    (tmp_path / "b" / "1.png").write_bytes(b"")
    assert [data[i]["name_b"] for i in (0, 1, 2, 1)] == ["0.png", "2.png", "2.png", "2.png"]
    assert [data[i]["name"] for i in (0, 1, 2, 1)] == ["0.png", "1.png", "2.png", "1.png"]
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert str(tmp_path / "b" / "1.png") in said


def test_a_look_without_a_readable_picture_is_an_error(tmp_path):
    data = both(tmp_path, 2, 2)
    for i in range(2):
        (tmp_path / "b" / f"{i}.png").write_text("<html>")
    with pytest.raises(
        DistillError,
        match="no picture of B of the training set can be read",
    ):
        data[0]


def test_batches_hold_both_looks_as_pictures(tmp_path):
    data = DistillData(both(tmp_path, 2, 2), both(tmp_path, 2, 2, train=False), 2)
    (raw,) = data.first_batches(1)
    batch = data.on_after_batch_transfer(raw, 0)
    for look, blue in (("a", 10), ("b", 20)):
        assert batch[look].shape == (2, 3, 64, 64)
        assert batch[look].dtype == torch.float32
        assert torch.equal(batch[look][:, 2], torch.full((2, 64, 64), blue / 255))
