"""The memory that a graph needs."""

import sys

import pytest
from onnx import helper

from distill_benchmark import footprint
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


@pytest.mark.skipif(sys.platform != "linux", reason="by Linux's own account of a process")
def test_the_peak_is_the_process_s_own(tmp_path, monkeypatch, capsys):
    status = "VmPeak:\t  999 kB\nVmHWM:\t  {} kB\nVmRSS:\t 1 kB\nVmHWM:\t 5 kB\n"
    told = iter([2048, 2048, 5120])
    read = footprint.Path.read_text

    def fake(path, *rest):
        return status.format(next(told)) if str(path) == "/proc/self/status" else read(path, *rest)

    monkeypatch.setattr(footprint.Path, "read_text", fake)
    assert footprint._peak() == 2048 * 1024
    (tmp_path / "a.onnx").write_bytes(clean().SerializeToString())
    words = ["footprint", str(tmp_path / "a.onnx"), "1", "CPUExecutionProvider"]
    monkeypatch.setattr(sys, "argv", words)
    footprint.main()
    assert float(capsys.readouterr().out) == 3  # MiB more than before it was loaded


def test_a_graph_is_loaded_as_it_was_asked_for(tmp_path, monkeypatch, capsys):
    opened, runs = [], []
    monkeypatch.setattr(footprint.sessions, "open_session", lambda *how: opened.append(how))
    monkeypatch.setattr(footprint.sessions, "sample_call", lambda _: lambda: runs.append(1))
    monkeypatch.setattr(sys, "argv", ["footprint", "a.onnx", "3", "Provider"])
    monkeypatch.setattr(footprint, "_peak", lambda: 0.0)
    footprint.main()
    assert opened == [(footprint.Path("a.onnx"), 3, "Provider")]
    assert len(runs) == footprint.RUNS
    assert float(capsys.readouterr().out) == 0
