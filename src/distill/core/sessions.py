"""ONNX Runtime on the provider and the number of threads that were asked for."""

import re
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from distill.core.errors import DistillError, reason_of
from distill.core.onnx_files import check_whole, read_graph

CPU = "CPUExecutionProvider"
MOST = 2**28  # values of a made-up input: a picture of 9,000 pixels a side
LOOK = "100"  # µs until a waiting thread sleeps: some layers of a student, and little to lose
SILENT = 4  # ONNX Runtime's level for fatal errors alone: what fails is raised, and said by us
DTYPES = {
    "tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64,
    "tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(int32)": np.int32,
    "tensor(int64)": np.int64, "tensor(bool)": np.bool_,
}  # fmt: skip


class NoProvider(DistillError):
    """A provider that is not there, or that would leave work to the CPU."""


def available_providers() -> list[str]:
    """The providers that this ONNX Runtime was built with."""
    return list(onnxruntime.get_available_providers())


def require_provider(provider: str) -> None:
    """Raises NoProvider where this ONNX Runtime was built without it."""
    there = available_providers()
    if provider not in there:
        raise NoProvider(
            f"providers=[{provider}]: not in this ONNX Runtime, left out (there are: "
            f"{', '.join(there)})"
        )


def open_session(
    model: onnx.ModelProto | Path, threads: int, provider: str = CPU, timed: bool = False
) -> onnxruntime.InferenceSession:
    """A session of a graph or a file, never on another provider.

    `threads` 0 leaves their number to ONNX Runtime. `timed`: they stop spinning when a run ends,
    since those of a session that takes turns with others would slow the next one's.
    Raises NoProvider, or whatever ONNX Runtime raises.
    """
    require_provider(provider)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = SILENT
    options.intra_op_num_threads = threads
    if timed:
        options.add_session_config_entry("session.force_spinning_stop", "1")
    else:
        # Where another program uses their cores, threads that look for work hold up each other.
        options.add_session_config_entry("session.intra_op.spin_duration_us", LOOK)
    if provider != CPU:
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    content = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
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


def open_file(path: Path, threads: int, name: str = "") -> onnxruntime.InferenceSession:
    """A session of a file on the CPU; `name` stands for its path in messages.

    Raises DistillError for a file that is missing, damaged or beyond this ONNX Runtime.
    """
    try:
        return open_session(path, threads)
    except Exception as error:  # see open_session
        if newer := too_new(error):
            raise DistillError(f"{name or path}: {newer}") from error
        check_whole(path, read_graph(path, name), name)
        reason = reason_of(error)
        raise DistillError(f"{name or path}: not a readable ONNX file ({reason})") from error


def too_new(error: Exception) -> str:
    """What a file says that is newer than this ONNX Runtime; empty where that is not the error."""
    limit = re.search(r"till (opset \d+)|max supported (IR version): (\d+)", str(error))
    newest = " ".join(filter(None, limit.groups())) if limit else ""
    return newest and (
        f"is newer than this ONNX Runtime ({onnxruntime.__version__}), which reads up to {newest}; "
        "export it with an older one, or pip install -U onnxruntime"
    )


def picture_call(
    session: onnxruntime.InferenceSession, **others: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Runs the session on what its first input takes; gives its first output.

    Further inputs are `others` by name, or made up: see `sample_inputs`.
    """
    first, *further = session.get_inputs()
    more = sample_inputs(session) if len(further) > len(others) else {}
    feed = {**more, **others}
    return lambda picture: np.asarray(session.run(None, {**feed, first.name: picture})[0])


def sample_inputs(session: onnxruntime.InferenceSession) -> dict[str, np.ndarray]:
    """Made-up inputs by name, the same at every call; a dimension that is not fixed is 1.

    Floats lie in [0, 1], bytes in 0 to 255, other kinds are zero.
    """
    rng = np.random.default_rng(0)
    inputs = {}
    for value in session.get_inputs():
        if value.type not in DTYPES:
            raise DistillError(f"its input {value.name} is {value.type}, nothing to time it with")
        shape = [d if isinstance(d, int) and d > 0 else 1 for d in value.shape]
        if prod(shape) > MOST:
            size = "×".join(map(str, shape))
            raise DistillError(f"its input {value.name} is {size}: too large to time it with")
        kind = np.dtype(DTYPES[value.type])
        values: np.ndarray = np.zeros(shape)
        if kind.kind == "f":
            values = rng.random(shape)
        elif kind == np.uint8:
            values = rng.integers(0, 256, shape)
        inputs[value.name] = values.astype(kind)
    return inputs


def sample_call(session: onnxruntime.InferenceSession) -> Callable[[], list[Any]]:
    """Runs the session on its `sample_inputs`, made once."""
    inputs = sample_inputs(session)
    return lambda: session.run(None, inputs)
