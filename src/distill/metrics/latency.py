"""How long one picture takes, on one thread: for the table of an export, not for a benchmark."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import onnxruntime
import torch
from torch import nn


def onnx_ms(path: Path, size: int, repeats: int = 30) -> float:
    """Median milliseconds of an exported student in ONNX Runtime, 1 thread, batch 1."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    photo = np.full((1, 3, size, size), 0.5, np.float32)
    name = session.get_inputs()[0].name
    return _median_ms(lambda: session.run(None, {name: photo}), repeats)


def torch_ms(network: nn.Module, size: int, repeats: int = 3) -> float:
    """Median milliseconds of a PyTorch network, 1 thread, batch 1."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            photo = torch.full((1, 3, size, size), 0.5)
            return _median_ms(lambda: network(photo), repeats)
    finally:
        torch.set_num_threads(threads)


def _median_ms(call: Callable[[], object], repeats: int) -> float:
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1000 * median(times)
