"""ONNX Runtime on the provider and the number of threads that were asked for, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from distill.core.errors import DistillError

CPU = "CPUExecutionProvider"

KINDS = {
    "tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64,
    "tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(int32)": np.int32,
    "tensor(int64)": np.int64, "tensor(bool)": np.bool_,
}  # fmt: skip


class NoProvider(DistillError):
    """A provider that is not there, or that would leave work to the CPU."""


def need(provider: str) -> None:
    """Raises NoProvider where this ONNX Runtime was built without it."""
    there = onnxruntime.get_available_providers()
    if provider not in there:
        raise NoProvider(
            f"providers=[{provider}]: not in this ONNX Runtime, left out (there are: "
            f"{', '.join(there)})"
        )


def start(
    model: onnx.ModelProto | str, threads: int, provider: str = CPU
) -> onnxruntime.InferenceSession:
    """A session, never on another provider. Raises NoProvider, or whatever ONNX Runtime raises."""
    need(provider)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    # Several sessions live at once, and one that spins after its turn slows the next one's.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    if provider != CPU:
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    content = model if isinstance(model, str) else model.SerializeToString()
    try:
        session = onnxruntime.InferenceSession(content, options, providers=[provider])
    except Exception as error:  # ONNX Runtime raises classes of its own, without a common base
        if provider != CPU and "fallback" in str(error).lower():
            raise NoProvider(
                f"providers=[{provider}]: would run all or part of it on the CPU, left out"
            ) from error
        raise
    if session.get_providers()[0] != provider:
        raise NoProvider(
            f"providers=[{provider}]: does not start on this machine, left out (ONNX Runtime "
            f"offers {', '.join(session.get_providers())} instead)"
        )
    return session


def call(session: onnxruntime.InferenceSession) -> Callable[[], list[Any]]:
    """Runs the session on one made-up input: floats in [0, 1], bytes, zeros of other kinds."""
    given = feed(session)
    return lambda: session.run(None, given)


def feed(session: onnxruntime.InferenceSession) -> dict[str, np.ndarray]:
    """Inputs by name, the same at every call; a dimension that is not fixed is 1."""
    rng = np.random.default_rng(0)
    made = {}
    for value in session.get_inputs():
        if value.type not in KINDS:
            raise DistillError(f"its input {value.name} is {value.type}, nothing to time it with")
        shape = [d if isinstance(d, int) and d > 0 else 1 for d in value.shape]
        kind = np.dtype(KINDS[value.type])
        if kind.kind == "f":
            made[value.name] = rng.random(shape).astype(kind)
        elif kind == np.uint8:
            made[value.name] = rng.integers(0, 256, shape).astype(kind)
        else:
            made[value.name] = np.zeros(shape, kind)
    return made


def load(path: Path) -> onnx.ModelProto:
    """An ONNX file. Raises DistillError for a missing or damaged one."""
    if not path.is_file():
        raise DistillError(f"{path}: no such file")
    try:
        return onnx.load(path)
    except Exception as error:  # protobuf's own classes, and whatever external data raises
        raise DistillError(f"{path}: not a readable ONNX file (damaged or cut short)") from error


def free_size(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose input and outputs may have any height and width, its operators untouched."""
    free = onnx.ModelProto()
    free.CopyFrom(model)
    del free.graph.value_info[:]  # shapes of inner tensors, which are the input's no more
    inputs = [value for value in free.graph.input if value.name == _names(free)[0]]
    for value in (*inputs, *free.graph.output):
        for dim, name in zip(
            value.type.tensor_type.shape.dim[2:], ("height", "width"), strict=False
        ):
            dim.dim_param = name
    return free


def _names(model: onnx.ModelProto) -> list[str]:
    """The inputs proper: old files list their weights as inputs too."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [value.name for value in model.graph.input if value.name not in weights]


def session(path: Path) -> onnxruntime.InferenceSession:
    """On the CPU and one thread, as metrics.latency measures."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
