from pathlib import Path

import numpy as np
import pytest

from distill.data.labelled.split import NO_TWINS, split
from distill.data.photos import Photo


def named(names):
    return [Photo(Path(name), name) for name in names]


def edges(*pairs):
    return np.array(pairs, np.int32)


def sides_of(photos, *pairs, fraction=0.3, seed=0):
    found = split(photos, fraction, seed, edges(*pairs) if pairs else NO_TWINS)
    return {photo.key: side for side, members in found.items() for photo in members}


MANY = named([f"{i}x.jpg" for i in range(200)])


def test_twins_of_different_names_fall_on_one_side():
    rng = np.random.default_rng(0)
    pairs = [tuple(sorted(rng.choice(200, 2, replace=False))) for _ in range(60)]
    sides = sides_of(MANY, *pairs)
    assert set(sides.values()) == {"train", "val"}
    assert all(sides[MANY[i].key] == sides[MANY[j].key] for i, j in pairs)


def test_twins_join_the_groups_of_their_names():
    photos = named(["A_0001.jpg", "A_0002.jpg", "B_0001.jpg", "B_0002.jpg", *(p.key for p in MANY)])
    for seed in range(20):
        sides = sides_of(photos, (1, 2), seed=seed)
        assert len({sides[key] for key in ("A_0001.jpg", "A_0002.jpg", "B_0002.jpg")}) == 1


def test_a_component_goes_where_its_smallest_name_goes():
    alone = sides_of(MANY)
    chained = sides_of(MANY, *((i, i + 1) for i in range(10, 19)))
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


def test_twins_of_one_name_stay_together_where_that_name_has_to_be_split():
    photos = named([f"x_{i:04d}.jpg" for i in range(6)])
    sides = sides_of(photos, (0, 3), (1, 4), fraction=0.001)
    assert set(sides.values()) == {"train", "val"}
    assert sides["x_0000.jpg"] == sides["x_0003.jpg"]
    assert sides["x_0001.jpg"] == sides["x_0004.jpg"]
