"""litert-torch wants another torch than this package, so its own interpreter is named by
$DISTILL_LITERT_PYTHON; without it only what people are told is tested."""

import json
import os
import stat
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from pickle import UnpicklingError
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from distill.core.errors import DistillError
from distill.metrics.similarity import psnr
from distill_formats import tflite_worker
from distill_formats.tflite import TfLite
from support.export_photos import SIZE, output_of, photos

PYTHON = os.environ.get("DISTILL_LITERT_PYTHON")
absent = pytest.mark.skipif(find_spec("litert_torch") is not None, reason="litert-torch is here")


@pytest.mark.skipif(not PYTHON, reason="no DISTILL_LITERT_PYTHON, an interpreter with litert-torch")
def test_its_output_is_that_of_pytorch(source, tmp_path):
    pytest.importorskip("ai_edge_litert", reason="the extra distill[tflite] is not installed")
    TfLite(python=PYTHON).convert(source, tmp_path)
    run = TfLite().open(tmp_path)
    assert run is not None
    given = photos(4).permute(0, 2, 3, 1).numpy()
    got = torch.cat([torch.from_numpy(run(p[None])) for p in given]).permute(0, 3, 1, 2)
    assert got.shape == (4, 3, SIZE, SIZE)
    assert psnr(got, output_of(source.folded, photos(4))).min() >= 80


@absent
def test_says_how_to_get_the_converter(source, tmp_path):
    with pytest.raises(DistillError, match=r"needs litert-torch; .*tflite\.python=ENV"):
        TfLite().convert(source, tmp_path)


@absent
def test_an_interpreter_without_it(source, tmp_path):
    with pytest.raises(DistillError, match=r"has no litert-torch; .*pip install litert-torch"):
        TfLite(python=sys.executable).convert(source, tmp_path)


def test_an_interpreter_that_is_not_there(source, tmp_path):
    with pytest.raises(DistillError, match=r"tflite\.python=nowhere/python: cannot be run"):
        TfLite(python="nowhere/python").convert(source, tmp_path)


def test_a_path_counts_from_where_it_was_typed(source, tmp_path, monkeypatch):
    """The converter runs in another folder; `env/bin/python` is what the help says to type."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scratch").mkdir()
    fake = tmp_path / "env/bin/python"
    fake.parent.mkdir(parents=True)
    fake.write_text("#!/bin/sh\necho made > student.tflite\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    TfLite(python="env/bin/python").convert(source, tmp_path / "scratch")
    assert (tmp_path / "scratch/student.tflite").read_text() == "made\n"


def test_nothing_but_a_network_is_read(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "litert_torch", SimpleNamespace())
    torch.save({"what": os.getcwd}, tmp_path / "network.fx")
    (tmp_path / "job.json").write_text("{}")
    with pytest.raises(UnpicklingError, match="weights_only"):
        tflite_worker.main(str(tmp_path / "network.fx"), str(tmp_path / "job.json"))


def test_the_other_interpreter_gets_the_worker_as_text(source, tmp_path, monkeypatch):
    fake = tmp_path / "python"
    fake.write_text(
        '#!/bin/sh\nprintf "%s\\n" "$@" > said\ncat > worker\necho made > student.tflite\n'
    )
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    TfLite(python=str(fake)).convert(source, tmp_path)
    said = (tmp_path / "said").read_text().splitlines()
    assert said == ["-", "network.fx", "job.json"]
    described = json.loads((tmp_path / "job.json").read_text())
    assert (described["shape"], described["type"]) == ([1, SIZE, SIZE, 3], "float32")
    assert described["target"] == "student.tflite"
    assert (tmp_path / "worker").read_text() == Path(tflite_worker.__file__).read_text()
    # What the worker reads: torch's own layers and the graph, as a stand-in for litert-torch.
    seen = []
    stand_in = SimpleNamespace(
        convert=lambda network, *_: seen.append(network) or SimpleNamespace(export=print)
    )
    monkeypatch.setitem(sys.modules, "litert_torch", stand_in)
    monkeypatch.setattr(tflite_worker, "add_metadata", lambda *_: None)
    tflite_worker.main(str(tmp_path / "network.fx"), str(tmp_path / "job.json"))
    (network,) = seen
    made = network(photos(1).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
    torch.testing.assert_close(made, output_of(source.folded, photos(1)), atol=1e-6, rtol=0)


def test_the_worker_converts_what_is_said(tmp_path, monkeypatch):
    """A stand-in for litert-torch that writes down what it is asked for."""
    asked = {}

    def convert(network, inputs):
        asked.update(network=network, shapes=[each.shape for each in inputs])
        return SimpleNamespace(export=lambda target: Path(target).write_text("made"))

    stand_in = SimpleNamespace(convert=convert)
    monkeypatch.setattr(tflite_worker, "add_metadata", lambda path, said: asked.update(said=said))
    monkeypatch.setitem(sys.modules, "litert_torch", stand_in)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    torch.save(nn.Dropout(), tmp_path / "network.fx")
    target = str(tmp_path / "student.tflite")
    said = {"target": target, "shape": [1, 96, 64, 3], "type": "uint8"}
    (tmp_path / "job.json").write_text(json.dumps(said | {"metadata": {"a": 1}}))
    tflite_worker.main(str(tmp_path / "network.fx"), str(tmp_path / "job.json"))
    assert isinstance(asked["network"], nn.Dropout)
    assert not asked["network"].training
    assert asked["shapes"] == [(1, 96, 64, 3)]
    assert asked["said"] == {"a": 1}
    assert (tmp_path / "student.tflite").read_text() == "made"
    assert os.environ.pop("CUDA_VISIBLE_DEVICES") == ""  # no GPU is asked for


class Halving:
    """LiteRT's interpreter with a network that halves: ends known by number."""

    def __init__(self, model_path: str, num_threads: int) -> None:
        assert Path(model_path).read_text() == "made"
        assert num_threads == 1
        self.tensors: dict[int, np.ndarray] = {}
        self.ready = False

    def allocate_tensors(self) -> None:
        self.ready = True

    def get_input_details(self) -> list[dict[str, int]]:
        return [{"index": 3}]

    def get_output_details(self) -> list[dict[str, int]]:
        return [{"index": 7}]

    def set_tensor(self, index: int, value: np.ndarray) -> None:
        assert self.ready
        self.tensors[index] = value

    def invoke(self) -> None:
        self.tensors[7] = self.tensors[3] / 2

    def get_tensor(self, index: int) -> np.ndarray:
        return self.tensors[index]


def test_what_runs_it_takes_and_gives_what_the_file_does(tmp_path, monkeypatch):
    stand_in = SimpleNamespace(Interpreter=Halving)
    monkeypatch.setitem(sys.modules, "ai_edge_litert", SimpleNamespace(interpreter=stand_in))
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", stand_in)
    (tmp_path / "student.tflite").write_text("made")
    run = TfLite().open(tmp_path)
    assert run is not None
    photo = np.arange(3 * 4 * 6, dtype=np.float32).reshape(1, 4, 6, 3)
    np.testing.assert_array_equal(run(photo), photo / 2)


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (
            "echo 'first' >&2\necho 'RuntimeError: no such op' >&2\nexit 1",
            "RuntimeError: no such op",
        ),
        ("exit 7", "it ended with status 7"),
    ],
)
def test_a_converter_that_breaks_says_its_last_line(source, tmp_path, ends, said):
    fake = tmp_path / "python"
    fake.write_text(f"#!/bin/sh\n{ends}\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(DistillError, match=f"tflite: litert-torch failed: {said}"):
        TfLite(python=str(fake)).convert(source, tmp_path)


@pytest.mark.campaign
def test_the_graph_that_travels_needs_nothing_of_ours(source, tmp_path):
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
