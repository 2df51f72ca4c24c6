"""The machine that figures were taken on, and the most arithmetic that it does in a second."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from functools import partial

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper

from distill.core import sessions
from distill.core.process import cores, processor

# Of square matrices: large enough to keep all units busy, and the smaller ones done before a busy
# system turns to another program.
SIDES = (512, 1024)


def facts() -> dict[str, object]:
    """What figures depend on; says nothing of whose machine it is."""
    return {
        "processor": processor(),
        "cores": cores(),
        "system": f"{platform.system()} {platform.machine()}",
        "onnxruntime": onnxruntime.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def load_average() -> float | None:
    """How many processes wanted a core in the last minute; None where the system does not tell."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def products(
    threads: int, provider: str = sessions.CPU
) -> dict[tuple[str, int], Callable[[], object]]:
    """Square float32 matrix products by (library, side): side³ MACs each.

    By ONNX Runtime and, on the CPU, by PyTorch: neither is fastest everywhere. PyTorch takes its
    process's number of threads, which the caller sets.
    """
    found: dict[tuple[str, int], Callable[[], object]] = {}
    for side in SIDES:
        session = sessions.open_session(product(side), threads, provider, timed=True)
        found["ONNX Runtime", side] = sessions.sample_call(session)
        if provider == sessions.CPU:
            a, b, out = (torch.rand(side, side) for _ in range(3))
            found["PyTorch", side] = partial(torch.mm, a, b, out=out)
    return found


def product(side: int) -> onnx.ModelProto:
    """(side, side) times a matrix of weights."""
    weights = np.random.default_rng(0).random((side, side), np.float32)
    a, c = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [side, side]) for n in "ac")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["a", "b"], ["c"])],
        "product", [a], [c], [numpy_helper.from_array(weights, "b")],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def rate(macs: int, milliseconds: float) -> float:
    """GMAC/s."""
    return macs / milliseconds / 1e6
