"""The machine and its peak: never how fast anything is."""

import os
import platform
import re
import sys

import onnxruntime
import pytest
import torch

from distill.metrics import timing
from distill.metrics.complexity import graph_macs


def test_rate():
    assert timing.rate(2_000_000_000, 500) == pytest.approx(4)  # 2 GMACs in half a second


def test_the_products_are_the_size_that_they_are_counted_as():
    for side in timing.SIDES:
        assert graph_macs(timing.product(side)) == side**3
    assert set(timing.products(1)) == {
        (library, side) for library in ("ONNX Runtime", "PyTorch") for side in timing.SIDES
    }


def test_the_machine_is_described_without_names_or_paths():
    facts = timing.facts()
    assert facts["cores"] == timing.cores() >= 1
    assert facts["onnxruntime"] == onnxruntime.__version__
    said = " ".join(map(str, facts.values()))
    assert not platform.node() or not re.search(rf"\b{re.escape(platform.node())}\b", said)
    assert "/" not in said


def test_what_the_machine_is_called_and_how_busy_it_is(monkeypatch):
    facts = timing.facts()
    assert facts["processor"] == timing.processor()
    assert facts["system"] == f"{platform.system()} {platform.machine()}"
    assert facts["python"] == platform.python_version()
    assert facts["torch"] == torch.__version__
    monkeypatch.setattr(os, "getloadavg", lambda: (1.23456, 7.0, 9.0), raising=False)
    assert timing.load_average() == 1.23
    monkeypatch.delattr(os, "getloadavg")
    assert timing.load_average() is None


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_processor_is_called_as_the_system_calls_it():
    with open("/proc/cpuinfo", errors="replace") as listed:
        names = [line.split(":", 1)[1].strip() for line in listed if line.startswith("model name")]
    assert timing.processor() == (names[0] if names else platform.machine())


def test_the_products_are_of_square_matrices_on_the_threads_asked_for(monkeypatch):
    opened = []
    real = timing.sessions.open_session

    def watched(graph, threads, provider, timed):
        opened.append((threads, timed))
        return real(graph, threads, provider, timed=timed)

    monkeypatch.setattr(timing.sessions, "open_session", watched)
    found = timing.products(1)
    assert opened == [(1, True)] * 2
    for (library, side), run in found.items():
        made = run()
        made = made[0] if library == "ONNX Runtime" else made
        assert tuple(made.shape) == (side, side)
