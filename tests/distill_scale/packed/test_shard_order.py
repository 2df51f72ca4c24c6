"""The order of training on shards: a function of seed and position, in two levels."""

import numpy as np
import pytest

from distill.data.sampler import Share
from distill_scale.packed.shard_order import BLOCK, WINDOW, ShardOrder

SIZES = np.array([5] * 150 + [2])
COUNT = int(SIZES.sum())
SHARD = np.repeat(np.arange(len(SIZES)), SIZES)  # of each pair


def stream(order, start, stop):
    return [order(position) for position in range(start, stop)]


@pytest.mark.parametrize("sizes", [SIZES, np.array([3]), np.array([4] * WINDOW), np.array([1, 7])])
def test_every_pass_holds_every_pair_once_and_no_two_passes_are_alike(sizes):
    order, count = ShardOrder(sizes, 0), int(sizes.sum())
    passes = [stream(order, k * count, (k + 1) * count) for k in range(3)]
    assert all(sorted(each) == list(range(count)) for each in passes)
    if count > 4:
        assert passes[0] != passes[1] != passes[2]


def test_a_position_means_the_same_whatever_was_asked_before():
    forward = stream(ShardOrder(SIZES, 0), 0, 2 * COUNT)
    other = ShardOrder(SIZES, 0)
    for position in np.random.default_rng(0).integers(0, 2 * COUNT, 300):
        assert other(int(position)) == forward[position]
    assert stream(ShardOrder(SIZES, 1), 0, COUNT) != forward[:COUNT]


def test_pairs_are_mixed_within_windows_of_whole_shards():
    found = stream(ShardOrder(SIZES, 0), 0, COUNT)
    shards = SHARD[found]
    window = 0
    while len(shards):
        inside = set(shards[: WINDOW * 5 - 3].tolist())  # one shard has 3 pairs fewer than others
        size = int(SIZES[[*inside]].sum())
        assert set(shards[:size].tolist()) == inside
        assert len(inside) == min(WINDOW, len(SIZES) - window * WINDOW)
        runs = np.count_nonzero(np.diff(shards[:size])) + 1
        assert runs > size / 2  # shard by shard it would be as many as shards
        shards, window = shards[size:], window + 1
    assert window == 3


def test_shards_of_one_window_are_not_neighbours_on_disk():
    first = {int(SHARD[i]) for i in stream(ShardOrder(SIZES, 0), 0, 64 * 5 - 3)}
    assert max(first) - min(first) > WINDOW


def shares(weights):
    edges = [0, 100, 130, 151]
    return [Share(np.arange(a, b), w) for a, b, w in zip(edges, edges[1:], weights, strict=False)]


FOLDER = np.repeat([0, 1, 2], [500, 150, 102])  # of each pair


@pytest.mark.parametrize("weights", [[1, 1, 1], [2, 1, 1], [1, 10, 1]])
def test_every_folder_has_its_share_and_its_pairs_come_equally_often(weights):
    order = ShardOrder(SIZES, 0, shares(weights))
    found = np.array(stream(order, 0, 10 * COUNT))
    for each in np.split(found, 10):  # fewer pairs than a block: every pass
        exact = np.array(weights) / sum(weights) * COUNT
        assert np.abs(np.bincount(FOLDER[each], minlength=3) - exact).max() < 1
    for folder in range(3):
        times = np.bincount(found, minlength=COUNT)[folder == FOLDER]
        assert times.max() - times.min() <= 1


def test_folders_are_mixed_and_a_position_means_the_same_there_too():
    order, other = (ShardOrder(SIZES, 0, shares([1, 1, 1])) for _ in range(2))
    forward = stream(order, 0, 2 * COUNT)
    assert np.count_nonzero(np.diff(FOLDER[forward[:COUNT]])) > COUNT / 3
    for position in (1503, 0, 752, 751, 0):
        assert other(position) == forward[position]


def test_ten_to_the_eight_pairs_take_no_permutation_of_them():
    order = ShardOrder(np.full(200_000, 500), 0)
    last = order(10**8 - 1)
    assert 0 <= last < 10**8
    held = [v for s in order._streams for v in vars(s).values() if isinstance(v, np.ndarray)]
    assert sum(v.nbytes for v in held) < 8e6
    assert order.block == BLOCK
