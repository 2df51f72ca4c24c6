"""Times and intervals: known answers, never how fast anything is."""

import numpy as np
import pytest
import torch

from distill.metrics import timing
from distill.metrics.timing import Times


def test_median_percentiles_and_fps():
    times = Times([4.0, 1.0, 2.0, 3.0, 5.0], [2.0])
    assert times.median == 3
    assert times.fps == pytest.approx(1000 / 3)
    assert times.percentile(25) == 2
    assert times.percentile(5) == pytest.approx(1.2)  # a fifth of the way from 1 to 2
    assert times.percentile(95) == pytest.approx(4.8)


# The 95 % ranks of the tables for the sign test: n, k-th smallest (and k-th largest).
RANKS = [(6, 1), (7, 1), (10, 2), (20, 6), (25, 8), (30, 10), (50, 18), (100, 40)]


@pytest.mark.parametrize(("n", "k"), RANKS)
def test_the_interval_of_a_median_has_the_tables_ranks(n, k):
    values = [float(v) for v in np.random.default_rng(n).permutation(n) + 1]
    assert timing.median_interval(values) == (k, n - k + 1)


@pytest.mark.parametrize("values", [[3.0], [3.0, 1.0], [1.0, 2.0, 3.0], [5.0, 3.0, 1.0, 4.0]])
def test_few_values_give_their_range(values):
    assert timing.median_interval(values) == (min(values), max(values))


def test_a_ratio_is_taken_round_by_round():
    # The machine slows down twofold half-way: the ratio of either half is 3, of the medians not.
    below = Times([], [1, 1, 1, 1, 2, 2, 2])
    above = Times([], [3, 3, 3, 3, 6, 6, 6])
    found = timing.ratio(above, below)
    assert (found.median, found.low, found.high) == (3, 3, 3)
    with pytest.raises(ValueError, match="zip"):
        timing.ratio(Times([], [1]), below)


def test_calls_take_turns_and_every_other_round_is_backwards(monkeypatch):
    clock = [0.0]
    turns = []
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])

    def call(name, seconds):
        def run():
            turns.append(name)
            clock[0] += seconds

        return run

    ticks = []
    calls = {"a": call("a", 0.2), "b": call("b", 0.02)}
    times = timing.interleave(calls, 3, lambda: ticks.append(1))
    warm = 2 * (1 + timing.WARM)
    slow, quick = ["a"], ["b"] * (1 + round(timing.SPAN / 0.02))  # one does not count
    assert turns[warm:] == [*slow, *quick, *quick, *slow, *slow, *quick]
    assert len(ticks) == 6
    assert times["a"].rounds == pytest.approx([200] * 3)
    assert times["b"].runs == pytest.approx([20] * 3 * round(timing.SPAN / 0.02))


class ObserverCallback(torch.nn.Module):
    """Notes what it is given; a run takes as many seconds as it has had before."""

    def __init__(self, clock):
        super().__init__()
        self.clock, self.seen = clock, []

    def forward(self, photo):
        self.clock[0] += len(self.seen)
        self.seen.append((photo.clone(), torch.get_num_threads()))
        return photo


@pytest.fixture
def clock(monkeypatch):
    seconds = [0.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: seconds[0])
    return seconds


def test_a_network_is_timed_on_one_thread_and_a_grey_picture(clock):
    """Runs of 0 (which does not count), 1, 2 and 3 seconds."""
    network, before = ObserverCallback(clock), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert timing.torch_ms(network, 8) == 2000
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert [threads for _, threads in network.seen] == [1] * 4
    assert all(torch.equal(photo, torch.full((1, 3, 8, 8), 0.5)) for photo, _ in network.seen)


def test_an_onnx_file_is_timed_on_one_thread_and_a_grey_picture(clock, monkeypatch, tmp_path):
    opened, network = [], ObserverCallback(clock)
    monkeypatch.setattr(timing, "open_session", lambda *how, **more: opened.append((how, more)))
    monkeypatch.setattr(
        timing, "picture_call", lambda _: lambda picture: network(torch.from_numpy(picture))
    )
    assert (
        timing.onnx_ms(tmp_path / "a.onnx", np.full((1, 3, 8, 8), 0.5, np.float32), repeats=5)
        == 3000
    )
    assert opened == [((tmp_path / "a.onnx",), {"threads": 1})]
    assert all(torch.equal(photo, torch.full((1, 3, 8, 8), 0.5)) for photo, _ in network.seen)
    assert len(network.seen) == 6
