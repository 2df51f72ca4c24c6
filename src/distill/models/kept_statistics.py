"""BatchNorm of a network in training whose running statistics stay as they are."""

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
    norms = [norm for norm in _norms(network) if norm.track_running_stats]
    for norm in norms:
        norm.track_running_stats = False
    try:
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True


@contextmanager
def by_averages(network: nn.Module) -> Iterator[None]:
    """Each BatchNorm normalises by its running statistics, as in evaluation."""
    norms = [norm for norm in _norms(network) if norm.training]
    for norm in norms:
        norm.eval()
    try:
        yield
    finally:
        for norm in norms:
            norm.train()


def normalise_by_averages(network: nn.Module) -> None:
    """Each BatchNorm normalises by its running statistics, as in evaluation, and records nothing.

    Until the network's mode is set anew. Scale and shift learn as ever.
    """
    for norm in _norms(network):
        norm.eval()


def _norms(network: nn.Module) -> Iterator[_BatchNorm]:
    return (module for module in network.modules() if isinstance(module, _BatchNorm))
