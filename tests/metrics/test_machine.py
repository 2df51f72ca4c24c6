"""The machine and its peak: never how fast anything is."""

from __future__ import annotations

import platform
import re

import onnxruntime
import pytest

from distill.metrics import machine
from distill.metrics.complexity import graph_macs


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
    said = " ".join(map(str, facts.values()))
    assert not platform.node() or not re.search(rf"\b{re.escape(platform.node())}\b", said)
    assert "/" not in said
