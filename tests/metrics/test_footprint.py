"""The memory that a graph needs."""

from __future__ import annotations

import sys

import pytest
from onnx import helper

from distill.metrics import footprint
from support.device_graphs import build, clean, picture


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
