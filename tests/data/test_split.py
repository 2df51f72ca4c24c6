import hashlib
from pathlib import Path

import numpy as np
import pytest

from distill.core.errors import DistillError
from distill.data.photos import Photo, group_of
from distill.data.split import NO_EDGES, split


def named(names):
    return [Photo(Path(name), name) for name in names]


def edges(*pairs):
    return np.array(pairs, np.int32)


def sides_of(photos, *pairs, fraction=0.3, seed=0, test=0.0):
    found = split(photos, fraction, seed, edges(*pairs) if pairs else NO_EDGES, test)
    return {photo.key: side for side, members in found.items() for photo in members}


MANY = named([f"{i}x.jpg" for i in range(200)])


# Groups of names


def test_a_fixed_side_is_kept():
    own = [Photo(Path("a.jpg"), "a.jpg", "train"), *MANY]
    assert own[0] in split(own, 0.99, 0)["train"]


def test_one_photo_cannot_be_split():
    with pytest.raises(DistillError, match=r"^one photo alone cannot be split .*; add more$"):
        split(named(["a.jpg"]), 0.5, 0)


def test_photos_with_sides_of_their_own_may_all_be_held_out():
    assert split([Photo(Path("a.jpg"), "a.jpg", "val")], 0.5, 0)["train"] == []


# Three sides


def share(name, seed=0):
    """Where the hash of seed and group falls in [0, 1)."""
    return int(hashlib.sha256(f"{seed}:{name}".encode()).hexdigest()[:16], 16) / 16**16


def test_the_lowest_hashes_are_for_testing_the_next_for_validation():
    sides = sides_of(MANY, fraction=0.2, test=0.15, seed=4)
    for photo in MANY:
        at = share(photo.key.removesuffix(".jpg"), 4)
        assert sides[photo.key] == ("test" if at < 0.15 else "val" if at < 0.35 else "train")


def test_what_was_held_out_of_two_sides_is_for_testing_of_three():
    """With the same share of each: no picture that was trained on becomes a test picture."""
    two, three = sides_of(MANY, fraction=0.1), sides_of(MANY, fraction=0.1, test=0.1)
    assert {key for key in two if two[key] == "val"} == {k for k in three if three[k] == "test"}


def test_groups_and_near_duplicates_stay_on_one_of_three_sides():
    photos = named(f"Person{p}_{n:04d}.jpg" for p in range(90) for n in range(3))
    rng = np.random.default_rng(0)
    pairs = [tuple(sorted(rng.choice(270, 2, replace=False).tolist())) for _ in range(20)]
    sides = sides_of(photos, *pairs, test=0.3)
    assert set(sides.values()) == {"train", "val", "test"}
    for person in range(90):
        assert len({sides[f"Person{person}_{n:04d}.jpg"] for n in range(3)}) == 1
    assert all(sides[photos[i].key] == sides[photos[j].key] for i, j in pairs)


def test_three_sides_stay_as_photos_are_added():
    many = named(f"photo of {i}.jpg" for i in range(300))
    whole, part = (sides_of(photos, fraction=0.2, test=0.2, seed=3) for photos in (many, many[::3]))
    assert part.items() <= whole.items()


@pytest.mark.parametrize("count", range(3, 21))
@pytest.mark.parametrize("fraction", [0.001, 0.1, 0.4])
def test_no_side_of_three_is_empty_from_three_photos_on(count, fraction):
    for seed in range(5):
        sides = sides_of(named(map(str, range(count))), fraction=fraction, test=fraction, seed=seed)
        assert set(sides.values()) == {"train", "val", "test"}


def test_of_few_photos_the_lowest_hashes_are_for_testing():
    names = sorted("abcdefg", key=share)
    sides = sides_of(named("abcdefg"), fraction=0.001, test=0.001)
    assert [sides[name] for name in names] == ["test", "val", *["train"] * 5]


@pytest.mark.parametrize("names", [["a.jpg", "b.jpg"], ["A_0001.jpg", "A_0002.jpg", "B_0001.jpg"]])
@pytest.mark.parametrize("fraction", [0.001, 0.3])
def test_of_two_components_none_is_for_testing(names, fraction):
    for seed in range(5):
        sides = sides_of(named(names), fraction=fraction, test=fraction, seed=seed)
        assert set(sides.values()) == {"train", "val"}
        assert sides[names[0]] == sides[names[-2]] or len(names) == 2


# Near-duplicates


@pytest.mark.parametrize("seed", range(8))
def test_a_component_goes_where_its_smallest_name_goes(seed):
    alone = sides_of(MANY, seed=seed)
    chained = sides_of(MANY, *((i, i + 1) for i in range(10, 19)), seed=seed)
    smallest = min(f"{i}x" for i in range(10, 20))
    assert {chained[f"{i}x.jpg"] for i in range(10, 20)} == {alone[f"{smallest}.jpg"]}
    assert all(alone[key] == chained[key] for key in alone if key not in
               {f"{i}x.jpg" for i in range(10, 20)})  # fmt: skip


def test_few_photos_are_held_out_in_whole_components():
    photos = named("abcdef")
    sides = sides_of(photos, (0, 1), (1, 2), (4, 5), fraction=0.001)
    assert set(sides.values()) == {"train", "val"}
    assert sides["a"] == sides["b"] == sides["c"]
    assert sides["e"] == sides["f"]


@pytest.mark.parametrize("names", ["abcd", ["x_0001", "x_0002", "x_0003", "x_0004"]])
def test_photos_that_are_all_alike_are_split_one_by_one_and_it_is_said(names, capsys):
    sides = sides_of(named(names), (0, 1), (1, 2), (2, 3), fraction=0.25)
    assert sorted(sides.values()) == ["train", "train", "train", "val"]
    assert "split one by one" in capsys.readouterr().out


def test_near_duplicates_of_one_name_stay_together_where_that_name_has_to_be_split():
    photos = named([f"x_{i:04d}.jpg" for i in range(6)])
    sides = sides_of(photos, (0, 3), (1, 4), fraction=0.001)
    assert set(sides.values()) == {"train", "val"}
    assert sides["x_0000.jpg"] == sides["x_0003.jpg"]
    assert sides["x_0001.jpg"] == sides["x_0004.jpg"]


# Shares of small sets


@pytest.mark.parametrize("count", [6, 10, 15, 20, 30, 50, 80])
def test_small_sets_keep_their_shares(count):
    """By the hash alone 20 photos had from 0 to 7 of 2 for testing: here half to twice."""
    for family in range(40):
        sides = split(named(f"{family}f{i}.jpg" for i in range(count)), 0.1, 0, test_fraction=0.1)
        for side in ("val", "test"):
            assert count * 0.1 / 2 <= len(sides[side]) <= max(1, 2 * 0.1 * count)


def test_a_person_of_most_pictures_is_not_held_out_of_few():
    """One of 30 pictures, ten of 2, shares of a tenth: held out are persons of 2."""
    names = [f"Big_{n:04d}.jpg" for n in range(30)]
    names += [f"Small{'abcdefghij'[p]}_{n:04d}.jpg" for p in range(10) for n in (1, 2)]
    for seed in range(20):
        sides = split(named(names), 0.1, seed, test_fraction=0.1)
        assert {group_of(photo.key) for photo in sides["train"]} >= {"Big"}
        assert 2 <= len(sides["val"]) <= 10
        assert 2 <= len(sides["test"]) <= 10


def test_what_is_near_its_share_goes_by_the_hash_alone():
    photos = named(f"photo of {i}.jpg" for i in range(40))
    low = {p.key for p in photos if int(digest(p.key), 16) / 16**16 < 0.3}
    assert 6 <= len(low) <= 24
    assert {photo.key for photo in split(photos, 0.3, 0)["val"]} == low


def digest(key):
    return hashlib.sha256(f"0:{Path(key).stem}".encode()).hexdigest()[:16]


@pytest.mark.parametrize("seed", range(6))
def test_the_smallest_group_is_held_out_where_none_fits(seed):
    """Of 18 photos a tenth is 2; groups have 6, 5, 4 and 3, and one is left for training."""
    sizes = {"a": 6, "b": 5, "c": 4, "d": 3}
    photos = named(f"{name}_{n:04d}.jpg" for name, size in sizes.items() for n in range(size))
    sides = sides_of(photos, fraction=0.1, seed=seed)
    held = {group_of(key) for key, side in sides.items() if side == "val"}
    assert held in ({"c"}, {"d"})
