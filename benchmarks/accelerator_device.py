"""A device: under what conditions it works, how long it takes, what it can do at all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

WARM = 3  # runs before anything is timed


class Traffic(TorchDispatchMode):
    """Bytes that the operators read and write when each runs alone; views move none."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        returned = [each.alias_info for each in func._schema.returns]
        if any(alias and not alias.is_write for alias in returned) or "empty" in str(func):
            return result
        tensors = [t for t in tree_leaves((args, kwargs, result)) if isinstance(t, Tensor)]
        self.bytes += sum(min(t.nbytes, t.untyped_storage().nbytes()) for t in tensors)
        return result


@contextmanager
def conditions(tf32: bool, tuned: bool = False, graphs: bool = False) -> Iterator[None]:
    """Float32 products in TF32 or not, cuDNN's search, CUDA graphs of what is compiled."""
    import torch._inductor.config as inductor

    cudnn = torch.backends.cudnn
    before = cudnn.allow_tf32, cudnn.benchmark, torch.get_float32_matmul_precision()
    cudnn.allow_tf32, cudnn.benchmark = tf32, tuned
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    try:
        with inductor.patch({"triton.cudagraphs": graphs}):
            yield
    finally:
        cudnn.allow_tf32, cudnn.benchmark = before[:2]
        torch.set_float32_matmul_precision(before[2])


def timed(run: Callable[[], object], times: int, device: str) -> float:
    """Seconds a run."""
    _wait(device)
    begun = time.perf_counter()
    for _ in range(times):
        run()
    _wait(device)
    return (time.perf_counter() - begun) / times


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def peaks(device: str, side: int, copied: int) -> dict[str, float]:
    """FLOP/s of a square matrix product in three kinds of arithmetic, bytes/s of a plain copy."""
    found = {}
    for name, dtype in {"fp32": None, "TF32": None, "bf16": torch.bfloat16}.items():
        a, b = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))
        with conditions(tf32=name == "TF32"):
            timed(partial(torch.mm, a, b), WARM, device)
            found[name] = 2 * side**3 / timed(partial(torch.mm, a, b), 10, device)
    source = torch.zeros(copied, dtype=torch.uint8, device=device)
    copy = partial(torch.empty_like(source).copy_, source)
    timed(copy, WARM, device)
    return found | {"copy": 2 * copied / timed(copy, 10, device)}
