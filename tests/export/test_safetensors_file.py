"""formats=safetensors as a user types it, and what other commands make of the file."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from distill.eval_fid import __main__ as eval_fid
from distill.export import __main__ as export
from distill.models.checkpoint import load_student
from distill.stylize import __main__ as stylize
from distill_benchmark import __main__ as benchmark
from support.commands import go, run

FILE = "runs/first/export/student.safetensors"


def exported() -> int:
    """A run of one step, and its network as ONNX and as safetensors."""
    assert go("run=first", "trainer.max_steps=1") == 0
    return run(export, "run=first", "exporter.size=[60,70]", "formats=safetensors")


@pytest.mark.slow
def test_the_weights_of_the_run_and_what_takes_them(here, capsys):
    assert exported() == 0
    student, _ = load_student(here / "runs/first/checkpoints/best.ckpt")
    state = load_file(here / FILE)
    assert state.keys() == student.state_dict().keys()
    for name, value in student.state_dict().items():
        assert torch.equal(state[name], value), name
    rows = json.loads((here / "runs/first/export/formats.json").read_text())["formats"]
    row = next(each for each in rows if each["format"] == "safetensors")
    assert row["files"] == ["student.safetensors"]
    assert row["worst"] == pytest.approx(100, abs=0.05)
    assert str(here).encode() not in (here / FILE).read_bytes()

    photo = next((here / "photos").iterdir())
    for words in ("run=first", f"model={FILE}"):
        assert run(stylize, str(photo), words, "-o", f"{words[:3]}.png") == 0
    ours, theirs = (np.asarray(Image.open(here / f"{name}.png")) for name in ("run", "mod"))
    np.testing.assert_array_equal(ours, theirs)
    assert run(benchmark, f"model={FILE}", "with_teacher=false", "sizes=[64]", "threads=[1]",
               "rounds=2") == 0  # fmt: skip

    # A new run starts exactly there: a step at this rate is smaller than 1e-29.
    capsys.readouterr()
    started = [f"init={FILE}", "run=second", "trainer.max_steps=1", "lr=1e-30"]
    assert go(*started, "encoder.weights=missing.safetensors") == 0  # not read
    after, said = load_student(here / "runs/second/checkpoints/last.ckpt")
    assert said.init == FILE
    for name, value in student.named_parameters():
        torch.testing.assert_close(after.get_parameter(name), value, atol=1e-29, rtol=0)
    assert go(*started[:1], "run=third", "decoder=nnconv", "trainer.max_steps=1") == 1
    assert f"init={FILE}: another network than this run's" in capsys.readouterr().err
    assert run(eval_fid, f"checkpoint={FILE}", "output=scores", "features=none") == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith(f"error: {FILE}: a network alone; this also needs its run's settings")
