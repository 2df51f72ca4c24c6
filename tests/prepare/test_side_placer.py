import itertools
from pathlib import Path

import numpy as np
import pytest

from distill.data.photos import Photo, group_of
from distill.data.split import new_sides
from distill.prepare.placement import SidePlacer


def place(names, sides=None, near=(), own=None, fraction=0.3, seed=0, test=0.0):
    """Sides by name, and the reasons of those left out; `sides` and `own` (fixed) by name.

    `near` are pairs of near-duplicates.
    """
    photos = [Photo(Path(n), n, (own or {}).get(n)) for n in names]
    edges = np.array([(names.index(a), names.index(b)) for a, b in near], np.int32).reshape(-1, 2)
    placer = SidePlacer(photos, [(sides or {}).get(n) for n in names], edges)
    placer.run(fraction, seed, test)
    return (
        dict(zip(names, placer.sides, strict=True)),
        {names[i]: reason for i, reason in placer.bridging.items()},
    )


NAMES = [f"n{i}x" for i in range(60)]
SIDES = ("train", "val", "test")


@pytest.mark.parametrize("test", [0.0, 0.2])
def test_without_anything_placed_it_is_the_split_of_all(test):
    photos = [Photo(Path(n), n) for n in NAMES]
    near = [("n1x", "n2x"), ("n2x", "n40x")]
    edges = np.array([(1, 2), (2, 40)], np.int32)
    sides, dropped = place(NAMES, near=near, test=test)
    assert list(sides.values()) == new_sides(photos, 0.3, 0, edges, test)
    assert ("test" in sides.values()) == (test > 0)
    assert not dropped


def test_a_new_photo_and_what_hangs_on_it_join_the_side_of_a_near_duplicate():
    for side in SIDES:
        sides, dropped = place(
            ["old", "new", "next", "Ann_0001", "Ann_0002", *NAMES],
            {"old": side},
            [("old", "new"), ("new", "next"), ("next", "Ann_0002")],
        )
        assert {sides[n] for n in ("new", "next", "Ann_0001", "Ann_0002")} == {side}
        assert not dropped


def test_a_photo_near_two_of_three_sides_or_all_is_left_out_and_says_of_whom():
    placed = {"a": "train", "b": "val", "c": "test"}
    words = {"a": "training", "b": "validation", "c": "test"}
    for near in ("ab", "ac", "bc", "abc"):
        pairs = [*((each, "new") for each in near), ("new", "after")]
        sides, dropped = place(["a", "b", "c", "new", "after", *NAMES], placed, pairs, test=0.2)
        assert sides["new"] is None
        assert sides["after"]  # reached through what is left out only: on its own
        said = " and with ".join(f"{each!r} in {words[each]}" for each in near)
        assert dropped == {"new": f"belongs with {said} (a near-duplicate, or of one name)"}


def test_a_chain_between_both_sides_is_cut_once():
    chain = ["a", "x", "y", "z", "b"]
    sides, dropped = place([*chain, *NAMES], {"a": "train", "b": "val"}, itertools.pairwise(chain))
    assert len(dropped) == 1
    assert [sides[n] for n in chain if sides[n]] == sorted(
        s for s in (sides[n] for n in chain) if s
    )


def test_a_photo_of_the_same_name_on_the_other_side_counts():
    _, dropped = place(
        ["Ann_0001", "Ann_0002", "b", *NAMES],
        {"Ann_0001": "train", "b": "val"},
        [("Ann_0002", "b")],
    )
    assert list(dropped) == ["Ann_0002"]


def test_a_name_that_is_on_both_sides_already_holds_nothing_back():
    placed = {"Ann_0001": "train", "Ann_0002": "val"}
    sides, dropped = place(["Ann_0001", "Ann_0002", "Ann_0003", *NAMES], placed)
    assert sides["Ann_0003"]
    assert not dropped


def test_a_training_photo_with_a_near_duplicate_in_the_validation_folder_is_left_out():
    own = {"T/1": "train", "T/2": "train", "V/1": "val", "V/2": "val"}
    sides, dropped = place(list(own), own=own, near=[("T/1", "V/2")])
    assert sides == {"T/1": None, "T/2": "train", "V/1": "val", "V/2": "val"}  # names do not count
    assert list(dropped) == ["T/1"]


def test_what_was_trained_on_is_no_longer_validated_on():
    own = {"T/1": "train", "V/1": "val", "V/2": "val"}
    sides, dropped = place(list(own), {"T/1": "train"}, [("T/1", "V/1")], own)
    assert sides == {"T/1": "train", "V/1": None, "V/2": "val"}
    assert list(dropped) == ["V/1"]


def test_no_new_photo_ever_ends_beside_the_other_side():
    """Random graphs: every edge that ends in a new photo stays within one side."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        names = [f"p{rng.integers(12)}_{i:04d}" for i in range(40)]
        pairs = {tuple(sorted(rng.choice(40, 2, replace=False).tolist())) for _ in range(25)}
        count = 2 + seed % 2  # of sides
        placed = {names[i]: SIDES[rng.integers(count)] for i in rng.permutation(40)[:12]}
        near = [(names[i], names[j]) for i, j in pairs]
        sides, dropped = place(names, placed, near, seed=seed, test=0.2 * (count - 2))
        assert placed.items() <= sides.items()
        assert {n for n in names if sides[n] is None} == set(dropped)
        torn = {group_of(n) for n in names}
        torn = {g for g in torn if len({placed[n] for n in placed if group_of(n) == g}) > 1}
        edges = {frozenset((names[i], names[j])) for i, j in pairs}
        edges |= {
            frozenset(pair)
            for pair in itertools.combinations(names, 2)
            if group_of(pair[0]) == group_of(pair[1]) not in torn
        }
        for a, b in map(tuple, edges):
            if sides[a] and sides[b] and not (a in placed and b in placed):
                assert sides[a] == sides[b], seed
        for name in dropped:
            near = {sides[n] for edge in edges if name in edge for n in edge - {name}}
            assert len(near - {None}) > 1, seed


def test_going_on_gives_the_plan_of_a_single_run():
    """Whatever part of a plan is there already, the rest comes out the same."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        names = [f"q{i}x" for i in range(40)]
        pairs = [tuple(rng.choice(40, 2, replace=False)) for _ in range(15)]
        near = [(names[i], names[j]) for i, j in pairs]
        for test in (0.0, 0.2):
            whole, _ = place(names, near=near, seed=seed, test=test)
            part = {names[i]: whole[names[i]] for i in rng.permutation(40)[: rng.integers(40)]}
            assert place(names, part, near, seed=seed, test=test)[0] == whole
