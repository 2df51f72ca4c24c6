"""litert-torch wants another torch than this package, so its own interpreter is named by
$DISTILL_LITERT_PYTHON; without it only what people are told is tested."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from distill.core.errors import DistillError
from distill.exporters.format import ConversionSource
from distill.exporters.tflite import TfLite
from distill.metrics.similarity import psnr
from support.export_photos import SIZE, output_of, photos

PYTHON = os.environ.get("DISTILL_LITERT_PYTHON")
absent = pytest.mark.skipif(find_spec("litert_torch") is not None, reason="litert-torch is here")


@pytest.mark.skipif(not PYTHON, reason="no DISTILL_LITERT_PYTHON, an interpreter with litert-torch")
def test_its_output_is_that_of_pytorch(source: ConversionSource, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="the extra distill[tflite] is not installed")
    TfLite().convert(replace(source, python=PYTHON), tmp_path)
    run = TfLite().open(tmp_path)
    assert run is not None
    got = torch.cat([torch.from_numpy(run(p[None].numpy())) for p in photos(4)])
    assert got.shape == (4, 3, SIZE, SIZE)
    assert psnr(got, output_of(source.folded, photos(4))).min() >= 80


@absent
def test_says_how_to_get_the_converter(source: ConversionSource, tmp_path: Path) -> None:
    with pytest.raises(DistillError, match=r"needs litert-torch; .*tflite\.python=ENV") as caught:
        TfLite().convert(source, tmp_path)
    assert "\n" not in str(caught.value)


@absent
def test_an_interpreter_without_it(source: ConversionSource, tmp_path: Path) -> None:
    with pytest.raises(DistillError, match=r"has no litert-torch; .*pip install litert-torch"):
        TfLite().convert(replace(source, python=sys.executable), tmp_path)


def test_an_interpreter_that_is_not_there(source: ConversionSource, tmp_path: Path) -> None:
    with pytest.raises(DistillError, match=r"tflite\.python=nowhere/python: cannot be run"):
        TfLite().convert(replace(source, python="nowhere/python"), tmp_path)


def test_a_path_counts_from_where_it_was_typed(
    source: ConversionSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The converter runs in another folder; `env/bin/python` is what the help says to type."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scratch").mkdir()
    fake = tmp_path / "env/bin/python"
    fake.parent.mkdir(parents=True)
    fake.write_text("#!/bin/sh\necho made > student.tflite\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    TfLite().convert(replace(source, python="env/bin/python"), tmp_path / "scratch")
    assert (tmp_path / "scratch/student.tflite").read_text() == "made\n"


def test_a_converter_that_ends_without_a_word(source: ConversionSource, tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nexit 7\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(DistillError, match="litert-torch failed: it ended with status 7"):
        TfLite().convert(replace(source, python=str(fake)), tmp_path)


def test_a_converter_that_breaks_says_its_last_line(
    source: ConversionSource, tmp_path: Path
) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho 'first' >&2\necho 'RuntimeError: no such op' >&2\nexit 1\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(DistillError, match="tflite: litert-torch failed: RuntimeError: no such op"):
        TfLite().convert(replace(source, python=str(fake)), tmp_path)


def test_the_graph_that_travels_needs_nothing_of_ours(
    source: ConversionSource, tmp_path: Path
) -> None:
    """Read back by another process without this package, its output is the same."""
    graph = tmp_path / "student.fx"
    torch.save(torch.fx.symbolic_trace(source.folded), graph)
    np.save(tmp_path / "photo.npy", photos(1).numpy())
    code = (
        "import sys, numpy, torch\n"
        "network = torch.load('student.fx', weights_only=False).eval()\n"
        "x = torch.from_numpy(numpy.load('photo.npy'))\n"
        "numpy.save('output.npy', network(x).detach().numpy())\n"
        "assert not any(name.split('.')[0] == 'distill' for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    expected = output_of(source.folded, photos(1)).numpy()
    np.testing.assert_allclose(np.load(tmp_path / "output.npy"), expected, atol=1e-6)
