"""BatchNorm's running statistics in training: kept as they are, or measured anew, robustly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

TRIMMED = 0.1  # of the batches, at each end, when statistics are measured
FLOOR = 0.03  # of the median variance of a layer's channels


@contextmanager
def statistics_kept(network: nn.Module) -> Iterator[None]:
    """Each BatchNorm that trains normalises by the current batch, as ever, and records nothing.

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

    Until the network's mode is set again. Scale and shift learn as ever.
    """
    for norm in _norms(network):
        norm.eval()


@contextmanager
def statistics_measured(network: nn.Module) -> Iterator[None]:
    """Running statistics become what the batches passed in this block have, in training mode.

    They are trimmed means over the batches: one picture that a layer has never seen the like of
    moves a plain average for long. No channel's variance falls below 3 % of the median of its
    layer: one that is 0 for most pictures would have a variance near 0, and the rare picture that
    it is not 0 for would leave the layer a thousand times too large.
    """
    seen: dict[_BatchNorm, list[tuple[Tensor, Tensor]]] = {norm: [] for norm in _norms(network)}

    def record(norm: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if norm.training:
            variance, mean = torch.var_mean(inputs[0].float(), (0, 2, 3))
            seen[norm].append((mean, variance))  # type: ignore[index]

    hooks = [norm.register_forward_pre_hook(record) for norm in seen]
    try:
        with torch.no_grad(), statistics_kept(network):
            yield
    finally:
        for hook in hooks:
            hook.remove()
    for norm, batches in seen.items():
        if batches and norm.running_mean is not None and norm.running_var is not None:
            means, variances = map(torch.stack, zip(*batches, strict=True))
            variance = _trimmed_mean(variances)
            norm.running_mean.copy_(_trimmed_mean(means))
            norm.running_var.copy_(variance.clamp_min(FLOOR * float(variance.median())))


def _trimmed_mean(values: Tensor) -> Tensor:
    """Over the first dimension, without the highest and the lowest tenth."""
    out = int(TRIMMED * len(values))
    return values.sort(0).values[out : len(values) - out].mean(0)


def _norms(network: nn.Module) -> Iterator[_BatchNorm]:
    return (module for module in network.modules() if isinstance(module, _BatchNorm))
