import itertools

import numpy as np
import pytest

from distill.core.errors import DistillError
from distill.data.augment import rng_for
from distill.data.datasets import PhotoSet
from distill.data.photos import Photo
from distill.data.sampler import StreamSampler, counts, shares_of

# The stream of positions


@pytest.mark.parametrize("start", [0, 8, 24])
@pytest.mark.parametrize("world", [1, 2, 4])
def test_ranks_share_the_rest_of_the_stream_between_them(start, world):
    parts = [list(StreamSampler(24, start, rank, world)) for rank in range(world)]
    assert sorted(itertools.chain(*parts)) == list(range(start, 24))
    assert len({len(part) for part in parts}) == 1


def test_ranks_take_whole_batches_in_turn():
    """Together they see the batches that one process would accumulate."""
    first, second = (list(StreamSampler(24, 8, rank, 2, batch=4)) for rank in (0, 1))
    assert first == [8, 9, 10, 11, 16, 17, 18, 19]
    assert second == [12, 13, 14, 15, 20, 21, 22, 23]
    assert list(StreamSampler(24, 8, batch=4)) == list(range(8, 24))


def test_ranks_take_turns():
    assert list(StreamSampler(9, 2, 1, 3)) == [3, 6]


@pytest.mark.parametrize(("world", "length"), [(1, 24), (2, 12), (4, 6)])
def test_the_length_is_that_of_the_whole_stream_wherever_it_starts(world, length):
    assert len(StreamSampler(24, 0, 0, world)) == len(StreamSampler(24, 16, 0, world)) == length


def test_a_stream_can_be_walked_twice():
    stream = StreamSampler(6, 2)
    assert list(stream) == list(stream) == [2, 3, 4, 5]


# Shares of folders


SIZES = {"a": 40, "b": 8, "c": 3}
FOLDERS = [name for name, size in SIZES.items() for _ in range(size)]


def stream(weights, seed=0):
    photos = [Photo(None, str(i), folder=name) for i, name in enumerate(FOLDERS)]
    return PhotoSet(photos, 64, True, seed=seed, shares=shares_of(weights, list(SIZES), FOLDERS))


def passes(data, count):
    n = len(FOLDERS)
    return [[data.index(p) for p in range(k * n, (k + 1) * n)] for k in range(count)]


@pytest.mark.parametrize("weights", [[1, 1, 1], [2, 1, 1], [1, 10, 1], [0.5, 0.25, 0.25]])
def test_every_pass_holds_each_folder_s_share(weights):
    exact = np.array(weights) / sum(weights) * len(FOLDERS)
    for each in passes(stream(weights), 5):
        taken = [sum(FOLDERS[i] == name for i in each) for name in SIZES]
        assert np.abs(taken - exact).max() < 1
        assert sum(taken) == len(FOLDERS)


@pytest.mark.parametrize("weights", [[1, 1, 1], [5, 1, 2]])
def test_every_photo_of_a_folder_is_seen_once_per_pass_of_that_folder(weights):
    seen = [i for each in passes(stream(weights), 12) for i in each]
    for name, size in SIZES.items():
        times = [seen.count(i) for i, folder in enumerate(FOLDERS) if folder == name]
        assert max(times) - min(times) <= 1
        assert sum(times) > size  # more than one pass, so that it matters


def test_the_stream_is_a_function_of_seed_and_position():
    data, other = stream([1, 1, 2]), stream([1, 1, 2])
    forward = [data.index(p) for p in range(300)]
    for p in (299, 0, 150, 51, 50, 151, 0):
        assert other.index(p) == forward[p]
    assert [stream([1, 1, 2], seed=1).index(p) for p in range(300)] != forward


def test_a_folder_s_order_is_new_in_every_pass_and_folders_are_mixed():
    each = passes(stream([1, 1, 1]), 6)
    of_b = [i for one in each for i in one if FOLDERS[i] == "b"]
    rounds = [tuple(of_b[k : k + 8]) for k in range(0, len(of_b) - 7, 8)]
    assert len(set(rounds)) > len(rounds) / 2
    switches = sum(FOLDERS[i] != FOLDERS[j] for i, j in zip(each[0], each[0][1:], strict=False))
    assert switches > 15  # of 50; in one block per folder there would be 2


def test_without_weights_the_stream_is_what_it_always_was():
    data = stream(None)
    for number in range(3):
        expected = rng_for(0, number).permutation(len(FOLDERS))
        assert passes(data, 3)[number] == expected.tolist()


def test_counts_add_up_and_are_the_nearest_whole_numbers():
    assert counts(shares_of([1, 1], ["a", "b"], list("aab")), 5) in ([3, 2], [2, 3])
    assert counts(shares_of([2, 1], ["a", "b"], list("aab")), 9) == [6, 3]
    assert counts(shares_of([1, 98, 1], list("abc"), list("abc")), 10) == [0, 10, 0]


@pytest.mark.parametrize(("weights", "names"), [([1, 2], ["a"]), ([1], ["a", "b"]), ([1, 1], [])])
def test_a_wrong_number_of_weights_is_one_line(weights, names):
    with pytest.raises(DistillError, match=r"data\.weights: \d weights?, but the photos come from"):
        shares_of(weights, names, list("ab"))


@pytest.mark.parametrize(("shuffle", "side"), [(True, "training"), (False, "held-out")])
def test_a_set_of_which_nothing_can_be_read_says_which_side(tmp_path, shuffle, side):
    data = PhotoSet([Photo(tmp_path / "no.png", "no")], 64, shuffle, seed=0)
    with pytest.raises(DistillError, match=rf"no photo of the {side} set can be read \(1 there"):
        data[0]


def test_a_folder_without_a_training_picture_is_named():
    with pytest.raises(DistillError, match=r"data\.weights: b has no picture to train on"):
        shares_of([1, 1], ["a", "b"], list("aaa"))


def test_one_folder_with_one_weight_is_no_share_at_all():
    assert shares_of([3.0], [], ["", ""]) is None
    assert shares_of([3.0], ["a"], ["", ""]) is None


def test_which_pictures_of_a_folder_a_pass_takes_goes_by_seed_folder_and_round():
    """Of two folders of 40, 20 each a pass: every second pass begins a folder again."""
    names = ["a"] * 40 + ["b"] * 40

    def taken(seed):
        photos = [Photo(None, str(i), folder=name) for i, name in enumerate(names)]
        data = PhotoSet(photos, 64, True, seed=seed, shares=shares_of([1, 1], ["a", "b"], names))
        data.count = 40
        data.shares = [(share, 20) for share, _ in data.shares]
        each = [{data.index(p) for p in range(k * 40, (k + 1) * 40)} for k in range(3)]
        return [({i for i in got if i < 40}, {i - 40 for i in got if i >= 40}) for got in each]

    first, other = taken(0), taken(1)
    assert first[0][0] | first[1][0] == set(range(40))
    assert first[0][0] != first[2][0]  # another round
    assert first[0][0] != first[0][1]  # another folder
    assert first[0][0] != other[0][0]  # another seed
