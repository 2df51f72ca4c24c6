"""Passes through a network in training that leave its running statistics alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


@contextmanager
def statistics_kept(network: nn.Module) -> Iterator[None]:
    """Each BatchNorm that trains normalises by the batch at hand, as ever, and records nothing.

    For further passes of one step: else their pictures would count among those that evaluation
    goes by, and those of earlier steps for less.
    """
    norms = [m for m in network.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]
    for norm in norms:
        norm.track_running_stats = False
    try:
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True
