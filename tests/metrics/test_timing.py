"""Times, intervals, sessions, peak: known answers, never how fast anything is."""

from __future__ import annotations

import re
import sys

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from distill.core import sessions
from distill.metrics import footprint, machine, timing
from distill.metrics.complexity import graph_macs
from distill.metrics.timing import Times
from support.device_graphs import build, clean, picture


def test_median_percentiles_and_fps():
    times = Times([4.0, 1.0, 2.0, 3.0, 5.0], [2.0])
    assert times.median == 3
    assert times.fps == pytest.approx(1000 / 3)
    assert times.percentile(25) == 2
    assert times.percentile(5) == pytest.approx(1.2)  # a fifth of the way from 1 to 2
    assert times.percentile(95) == pytest.approx(4.8)


# The 95 % ranks of the tables for the sign test: n, k-th smallest (and k-th largest).
RANKS = [(6, 1), (10, 2), (20, 6), (25, 8), (30, 10), (50, 18), (100, 40)]


@pytest.mark.parametrize(("n", "k"), RANKS)
def test_the_interval_of_a_median_has_the_tables_ranks(n, k):
    values = [float(v) for v in np.random.default_rng(n).permutation(n) + 1]
    assert timing.median_interval(values) == (k, n - k + 1)


@pytest.mark.parametrize("values", [[3.0], [3.0, 1.0], [5.0, 3.0, 1.0, 4.0]])
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


def test_contenders_take_turns_and_every_other_round_is_backwards(monkeypatch):
    clock = [0.0]
    turns = []
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])

    def contender(name, seconds):
        def run():
            turns.append(name)
            clock[0] += seconds

        return run

    ticks = []
    calls = {"a": contender("a", 0.2), "b": contender("b", 0.02)}
    times = timing.interleave(calls, 3, lambda: ticks.append(1))
    warm = 2 * (1 + timing.WARM)
    slow, quick = ["a"], ["b"] * (1 + round(timing.SPAN / 0.02))  # one does not count
    assert turns[warm:] == [*slow, *quick, *quick, *slow, *slow, *quick]
    assert len(ticks) == 6
    assert times["a"].rounds == pytest.approx([200] * 3)
    assert times["b"].runs == pytest.approx([20] * 3 * round(timing.SPAN / 0.02))


def test_a_provider_that_is_not_there_is_refused_by_name():
    with pytest.raises(sessions.NoProvider, match=r"providers=\[NoneExecutionProvider\].*CPU"):
        sessions.start(clean(), 1, "NoneExecutionProvider")


def test_a_provider_that_starts_as_another_is_refused(monkeypatch):
    # As CUDA's does on a machine without its libraries: ONNX Runtime goes on with the CPU's.
    monkeypatch.setattr(sessions, "need", lambda provider: None)

    class Session:
        def __init__(self, *_, **__):
            pass

        def get_providers(self):
            return [sessions.CPU]

    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    with pytest.raises(sessions.NoProvider, match="does not start on this machine"):
        sessions.start(clean(), 1, "CUDAExecutionProvider")


def test_a_provider_that_leaves_nodes_to_the_cpu_is_refused():
    others = set(onnxruntime.get_available_providers()) - {sessions.CPU}
    if "AzureExecutionProvider" not in others:
        pytest.skip("this ONNX Runtime has no provider that leaves all to the CPU")
    with pytest.raises(sessions.NoProvider, match="on the CPU, left out"):
        sessions.start(clean(), 1, "AzureExecutionProvider")


def test_inputs_of_many_kinds_are_made_up():
    kinds = {"f": 1, "h": 10, "u": 2, "i": 7, "b": 9}  # TensorProto's numbers
    inputs = [helper.make_tensor_value_info(n, k, [2, "n"]) for n, k in kinds.items()]
    nodes = [helper.make_node("Identity", [n], [f"{n}_out"]) for n in kinds]
    outputs = [helper.make_tensor_value_info(f"{n}_out", k, [2, "n"]) for n, k in kinds.items()]
    session = sessions.start(build(nodes, opset=13, inputs=inputs, outputs=outputs), 1)
    made = sessions.feed(session)
    assert {n: a.shape for n, a in made.items()} == dict.fromkeys(kinds, (2, 1))
    assert [made[n].dtype.char for n in "fhuib"] == ["f", "e", "B", "l", "?"]
    assert 0 <= made["f"].min() <= made["f"].max() <= 1
    drawn = sessions.call(session)()
    np.testing.assert_array_equal(drawn[2], made["u"])


def test_rate():
    assert machine.rate(2_000_000_000, 500) == pytest.approx(4)  # 2 GMACs in half a second


def test_the_products_are_the_size_that_they_are_counted_as():
    for side in machine.SIDES:
        assert graph_macs(machine.product(side)) == side**3
    assert set(machine.products(1)) == {
        (library, side) for library in ("ONNX Runtime", "PyTorch") for side in machine.SIDES
    }


def test_the_machine_is_described_without_names_or_paths():
    facts = machine.facts()
    assert facts["cores"] == machine.cores() >= 1
    assert facts["onnxruntime"] == onnxruntime.__version__
    import platform

    said = " ".join(map(str, facts.values()))
    assert not platform.node() or not re.search(rf"\b{re.escape(platform.node())}\b", said)
    assert "/" not in said


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell")
def test_memory_grows_with_what_a_graph_holds():
    node = helper.make_node("Concat", ["x"] * 64, ["y"], axis=1)
    big = picture("x", 1, 4, 512, 512)  # 4 MiB, 64 times: 256 MiB of output
    out = picture("y", 1, 256, 512, 512)
    large = footprint.peak_mib(build([node], opset=13, inputs=[big], outputs=[out]), 1)
    small = footprint.peak_mib(clean(), 1)
    assert large is not None
    assert small is not None
    assert large > 256
    assert small < 64


def test_a_graph_that_does_not_run_has_no_memory_figure():
    assert footprint.peak_mib(clean(), 1, "NoneExecutionProvider") is None
