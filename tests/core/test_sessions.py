"""Sessions on the provider that was asked for, and inputs that are made up."""

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from distill.core import sessions
from distill.core.errors import DistillError
from support.device_graphs import build, clean, picture


def test_a_provider_that_is_not_there_is_refused_by_name():
    with pytest.raises(sessions.NoProvider, match=r"providers=\[NoneExecutionProvider\].*CPU"):
        sessions.open_session(clean(), 1, "NoneExecutionProvider")


def test_a_provider_that_starts_as_another_is_refused(monkeypatch):
    # As CUDA's does on a machine without its libraries: ONNX Runtime goes on with the CPU's.
    monkeypatch.setattr(sessions, "require_provider", lambda provider: None)

    class Session:
        def __init__(self, *_, **__):
            pass

        def get_providers(self):
            return [sessions.CPU]

    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    with pytest.raises(sessions.NoProvider, match="does not start on this machine"):
        sessions.open_session(clean(), 1, "CUDAExecutionProvider")


def test_a_provider_that_leaves_nodes_to_the_cpu_is_refused():
    others = set(onnxruntime.get_available_providers()) - {sessions.CPU}
    if "AzureExecutionProvider" not in others:
        pytest.skip("this ONNX Runtime has no provider that leaves all to the CPU")
    with pytest.raises(sessions.NoProvider, match="on the CPU, left out"):
        sessions.open_session(clean(), 1, "AzureExecutionProvider")


def test_inputs_of_many_kinds_are_made_up():
    kinds = {"f": 1, "h": 10, "u": 2, "i": 7, "b": 9}  # TensorProto's numbers
    inputs = [helper.make_tensor_value_info(n, k, [2, "n"]) for n, k in kinds.items()]
    nodes = [helper.make_node("Identity", [n], [f"{n}_out"]) for n in kinds]
    outputs = [helper.make_tensor_value_info(f"{n}_out", k, [2, "n"]) for n, k in kinds.items()]
    session = sessions.open_session(build(nodes, opset=13, inputs=inputs, outputs=outputs), 1)
    made = sessions.sample_inputs(session)
    assert {n: a.shape for n, a in made.items()} == dict.fromkeys(kinds, (2, 1))
    assert [made[n].dtype.char for n in "fhuib"] == ["f", "e", "B", "l", "?"]
    assert 0 <= made["f"].min() <= made["f"].max() <= 1
    values = sessions.sample_call(session)()
    np.testing.assert_array_equal(values[2], made["u"])


def test_an_input_that_no_memory_holds_is_refused():
    graph = build(
        [helper.make_node("Shape", ["x"], ["y"])], opset=13, inputs=[picture("x", 1, 3, 2**31, 64)],
        outputs=[helper.make_tensor_value_info("y", 7, [4])],
    )  # fmt: skip
    with pytest.raises(DistillError, match="its input x is 1×3×2147483648×64: too large"):
        sessions.sample_inputs(sessions.open_session(graph, 1))


def test_threads_that_wait_do_not_hold_their_cores():
    options = sessions.open_session(clean(), 2).get_session_options()
    assert options.get_session_config_entry("session.intra_op.spin_duration_us") == "100"


def test_what_is_timed_waits_as_others_time_it():
    options = sessions.open_session(clean(), 2, timed=True).get_session_options()
    with pytest.raises(RuntimeError, match="does not have"):
        options.get_session_config_entry("session.intra_op.spin_duration_us")
