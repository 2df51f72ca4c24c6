"""What a metric of the user's own is: a figure of every picture."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from distill.core.errors import DistillError, of_the_user
from distill.core.images import form
from distill.core.nodes import part

Measure = Callable[[Tensor, Tensor], Tensor]


class Metric(ABC):
    """A function of pictures and their targets, whose means distill.eval_fid reports.

    >>> class Paler(distill.Metric):
    ...     def __call__(self, output, target):
    ...         return (output - target).mean((1, 2, 3))
    >>> Paler()(torch.ones(2, 3, 64, 64), torch.zeros(2, 3, 64, 64))
    tensor([1., 1.])
    """

    @abstractmethod
    def __call__(self, output: Tensor, target: Tensor) -> Tensor:
        """A figure (N,) for each of (N, 3, H, W) RGB in [0, 1]; both are of one size."""


def user_metrics(nodes: Mapping[str, dict[str, Any]]) -> dict[str, Measure]:
    """The user's metrics by their names, each tried, and checked when it is called.

    Raises DistillError for a wrong one.
    """
    metrics: dict[str, Measure] = {}
    for name, node in nodes.items():
        metrics[name] = partial(_figures, f"metrics.{name}", part(f"metrics.{name}", node, Metric))
        metrics[name](*torch.rand(2, 2, 3, 64, 96, generator=torch.Generator().manual_seed(0)))
    return metrics


@torch.inference_mode()
def _figures(key: str, metric: Metric, output: Tensor, target: Tensor) -> Tensor:
    with of_the_user(f"{key}: a call with {form(output)}"):
        figures: Any = metric(output, target)
    count = len(output)
    if isinstance(figures, Tensor) and figures.shape == (count,) and figures.isfinite().all():
        return figures
    gave = form(figures) if isinstance(figures, Tensor) else type(figures).__name__
    want = f"{count} finite figures, one a picture, ({count},)"
    raise DistillError(f"{key}: gave {gave}, want {want}")
