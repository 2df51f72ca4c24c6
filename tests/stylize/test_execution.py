"""device=: the provider that is taken, checked against the CPU, and what is said."""

import numpy as np
import pytest

from distill.core import sessions
from distill.core.errors import DistillError
from distill.export.onnx import OnnxExporter
from distill.stylize import __main__ as stylize
from distill.stylize import onnx_student
from distill.stylize.onnx_student import TOLERANCE, OnnxStudent
from support.commands import run
from support.stylize_setup import Negative, Reshaped, files, pixels, put

CUDA, DML = "CUDAExecutionProvider", "DmlExecutionProvider"


@pytest.fixture
def machine(monkeypatch):
    """A function that stands in for other devices: what each adds to the CPU's output.

    A text in place of a number is what ONNX Runtime says when the session is opened. Gives the
    list of providers that ran a picture.
    """

    def make(**adds):
        added = {sessions.CPU: 0.0}
        added |= {onnx_student.PROVIDERS[device]: add for device, add in adds.items()}
        real, ran = sessions.onnxruntime.InferenceSession, []

        class StandIn:
            def __init__(self, content, options, providers):
                (self.provider,) = providers
                if isinstance(added[self.provider], str):
                    raise RuntimeError(added[self.provider])
                plain = sessions.onnxruntime.SessionOptions()
                plain.intra_op_num_threads = 1
                self.cpu = real(content, plain, providers=[sessions.CPU])

            def get_providers(self):
                return [self.provider, sessions.CPU]

            def get_inputs(self):
                return self.cpu.get_inputs()

            def run(self, names, given):
                ran.append(self.provider)
                return [
                    out + np.float32(added[self.provider]) for out in self.cpu.run(names, given)
                ]

        offered = "get_available_providers"
        monkeypatch.setattr(sessions.onnxruntime, offered, lambda: [*reversed(added)])
        monkeypatch.setattr(sessions.onnxruntime, "InferenceSession", StandIn)
        return ran

    return make


@pytest.fixture(scope="module")
def negative():
    return OnnxExporter(size=64).export(Negative())


FALLBACK = "This session contains graph nodes that are assigned to fallback to the default CPU EP"


@pytest.mark.parametrize(
    ("adds", "device", "provider", "said"),
    [
        ({}, "auto", sessions.CPU, "device: cpu"),
        ({"cuda": 0.0}, "cpu", sessions.CPU, "device: cpu"),
        ({"cuda": 0.0, "directml": 0.0}, "auto", CUDA, "device: cuda (device=cpu for the CPU)"),
        ({"cuda": 0.9 * TOLERANCE}, "auto", CUDA, "device: cuda (device=cpu for the CPU)"),
        ({"cuda": 0.5, "directml": 0.0}, "auto", DML, "device: directml (device=cpu for the CPU)"),
        ({"cuda": 0.0, "directml": 0.0}, "directml", DML, "device: directml"),
        ({"tensorrt": 0.0}, "auto", sessions.CPU, "device: cpu"),
    ],
)
def test_the_best_that_agrees_is_taken(machine, negative, adds, device, provider, said):
    machine(**adds)
    assert onnx_student.choose_provider(negative, device, 1) == (provider, said)


@pytest.mark.parametrize(
    ("add", "reason"),
    [
        (0.5, "cuda: its output is 0.5 from the CPU's, more than 0.00784"),
        (1.1 * TOLERANCE, "more than 0.00784"),
        (float("nan"), "its output is nan from the CPU's"),
        (FALLBACK, "would run all or part of it on the CPU"),
        ("no driver\nhere", "cuda: no driver here"),
    ],
)
def test_one_that_does_not_fit_is_left_and_why_is_said(machine, negative, add, reason):
    machine(cuda=add)
    provider, said = onnx_student.choose_provider(negative, "auto", 1)
    assert provider == sessions.CPU
    assert said.startswith("device: cpu; cuda: ")
    assert reason in said
    assert "\n" not in said
    with pytest.raises(DistillError, match=r"^device=cuda: .*; take device=auto or device=cpu$"):
        onnx_student.choose_provider(negative, "cuda", 1)


@pytest.mark.parametrize("network", [Negative, Reshaped], ids=["any size", "one size"])
def test_pictures_run_on_what_was_chosen(machine, network):
    ran = machine(cuda=0.0)
    student = OnnxStudent(OnnxExporter(size=64).export(network()), "student", 1, "auto")
    ran.clear()
    out = student(np.full((1, 3, 64, 64), 0.25, np.float32))
    assert ran == [CUDA]
    assert np.allclose(out, 0.75)


def test_a_device_that_is_not_there_is_one_line(shipped_students, machine, capsys):
    machine(coreml=0.0)
    put("a.png")
    assert run(stylize, "a.png", "device=cuda") == 1
    said = capsys.readouterr().err
    assert said == "error: device=cuda: not in this ONNX Runtime; there are: coreml, cpu\n"
    assert files() == ["a.png"]


def test_the_command_says_what_it_used(shipped_students, machine, capsys):
    machine(cuda=0.0)
    put("a.png")
    assert run(stylize, "a.png", "-o", "auto.png") == 0
    assert capsys.readouterr().out.splitlines()[0] == "device: cuda (device=cpu for the CPU)"
    assert run(stylize, "a.png", "-o", "cpu.png", "device=cpu") == 0
    assert capsys.readouterr().out.splitlines()[0] == "device: cpu"
    assert (pixels("auto.png") == pixels("cpu.png")).all()
