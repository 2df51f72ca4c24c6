"""Float32 weights so small that arithmetic with them is slow: counted, and set to zero."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx
from onnx import numpy_helper

FLUSH = 1e-20  # |w| below it becomes zero: same output, and no subnormal arithmetic


def count_subnormals(arrays: Iterable[np.ndarray]) -> int:
    """How many float32 values are subnormal: not zero, and below 1.18e-38."""
    tiny = np.finfo(np.float32).tiny
    floats = (array for array in arrays if array.dtype == np.float32)
    return sum(int(((a != 0) & (np.abs(a) < tiny)).sum()) for a in floats)


def flush_subnormals(model: onnx.ModelProto) -> int:
    """Set every |w| < 1e-20 to zero, in place; gives how many there were."""
    count = 0
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype != np.float32:
            continue
        tiny = (values != 0) & (np.abs(values) < FLUSH)
        if tiny.any():
            count += int(tiny.sum())
            tensor.CopyFrom(numpy_helper.from_array(np.where(tiny, 0, values), tensor.name))
    return count
