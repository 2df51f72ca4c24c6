"""Figures picture by picture, and their intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from distill.core.images import batches

Values = NDArray[np.float64]


@torch.inference_mode()
def per_picture(
    measure: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor, batch_size: int
) -> Values:
    """Figures of every picture, (n, …), of uint8 (n, 3, H, W) against others of the same size."""
    pairs = zip(batches(a, batch_size), batches(b, batch_size), strict=True)
    return np.concatenate([measure(x, y).double().numpy() for x, y in pairs])


def interval(
    method: Callable[..., tuple[float, float]], *values: Values, rounds: int, **options: Any
) -> list[float] | None:
    """The ends of a 95 % interval by that many resamples; None without any, or of one picture or
    one of the `groups`."""
    groups = options.get("groups")
    each = groups if isinstance(groups, tuple) else (groups,) * len(values)
    counts = [len(v) if g is None else len(set(g)) for v, g in zip(values, each, strict=True)]
    enough = rounds and min(counts) > 1
    return list(method(*values, rounds=rounds, **options)) if enough else None
